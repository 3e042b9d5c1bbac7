#include "library/accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "compiler/host_program.h"
#include "compiler/target.h"
#include "ir/program.h"
#include "library/differences.h"
#include "library/library_build.h"
#include "library/program_simulation.h"
#include "library/rounding.h"
#include "simulator/interpreter.h"
#include "support/number_formats.h"

namespace tilewright::library {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A row that is small beside the others by cancellation is judged by this much of the whole.
constexpr double kSmallRow = 0x1p-7;
// One that is nothing but 0, such as the gradient of a key that its queries see alone, is what many
// sums leave that cancel.
constexpr double kZeroRow = 0x1p-5;
// Where all that is wanted is 0, errors are relative to this. The numbers that cancel, such as
// those of the gradient of a single key's score, are taken to be of magnitude 1.
constexpr double kSmallWhole = 0x1p-10;
// What is left of them are the errors of sums in f32, of up to some hundred terms, whatever the
// dtype of the output: so much of that, as a sum in another order leaves it.
constexpr double kCancelled = 0x1p-8;
// Room over the errors of the interpreter, which sums in one order and takes exact functions.
constexpr double kRoom = 1.5, kElementRoom = 2;
// The farthest of many elements, which another order of the terms draws anew: so many root mean
// squares of the worst row's errors.
constexpr double kFarthest = 6;
// What an output of f32 is allowed at least: sums of thousands of terms, ex2.approx, which errs by
// 2^-22, and exp2_polynomial, which errs by 3e-6.
constexpr double kSingle = 2e-5;

// The sign of a NaN says nothing.
std::string number_text(double number) {
  return std::isnan(number) ? "nan" : fmt::format("{}", number);
}

// Elements that are held against their root mean square together: those of the last axis, and of
// the axes before it while these are few. A number alone may be near 0 by cancellation, such as the
// logarithm of a sum near 1, and its error is not small beside it.
std::size_t row_of(const std::vector<std::int64_t>& shape) {
  constexpr std::int64_t kFew = 8;
  std::int64_t row = 1;
  for (auto extent = shape.rbegin(); extent != shape.rend() && row < kFew; ++extent) {
    row *= std::max<std::int64_t>(*extent, 1);
  }
  return static_cast<std::size_t>(row);
}

double root_mean_square(std::span<const double> values) {
  double sum = 0, count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value * value;
    ++count;
  }
  return count == 0 ? 0 : std::sqrt(sum / count);
}

// Below this a row of such a tensor is small by cancellation.
double small_row_of(double root_mean_square_of_all) { return kSmallRow * root_mean_square_of_all; }

bool has_small_rows(std::span<const double> wanted, std::size_t row) {
  const double small = small_row_of(root_mean_square(wanted));
  for (std::size_t first = 0; first < wanted.size(); first += row) {
    if (root_mean_square(wanted.subspan(first, row)) < small) return true;
  }
  return false;
}

// What errors of the whole are relative to.
double magnitude_of(std::span<const double> wanted, double least) {
  const double found = root_mean_square(wanted);
  return std::max(found == 0 ? kSmallWhole : found, least);
}

// By which factor all is too large, less 1, and of how many equal rows it is the mean. One term may
// outweigh all others of a row, whose elements then err alike, and rows err by themselves. No rows:
// all that is wanted is 0.
struct Factor {
  double off = 0, rows = 0;
};

Factor factor_of(std::span<const double> got, std::span<const double> wanted, std::size_t row,
                 double least) {
  double along = 0, squares = 0, fourths = 0;
  for (std::size_t first = 0; first < wanted.size(); first += row) {
    double of_row = 0;
    for (std::size_t i = first; i < first + row; ++i) {
      if (!std::isfinite(wanted[i]) || !std::isfinite(got[i])) continue;
      along += (got[i] - wanted[i]) * wanted[i];
      of_row += wanted[i] * wanted[i];
    }
    squares += of_row;
    fourths += of_row * of_row;
  }
  if (squares == 0) return {};
  const double least_of_all = least / root_mean_square(wanted);
  return {std::abs(along) / (squares * std::max(1.0, least_of_all)), squares * squares / fourths};
}

// The mean of so many rows scatters as much less than one, of which it may be six times.
double factor_of_rounding(double whole, double rows) {
  constexpr double kDeviations = 6, kOfRow = 0.5;  // a row's, as a share of what is allowed of all
  return whole * std::min(1.0, kDeviations * kOfRow / std::sqrt(rows));
}

// What nobody writes is no number: it stays what a workload's outputs hold at first.
double difference(double got, double wanted) {
  if (got == wanted || (std::isnan(got) && std::isnan(wanted))) return 0;
  return std::isfinite(got) && std::isfinite(wanted) ? std::abs(got - wanted) : kInfinity;
}

// 0 / 0 is no error, and nothing allows an infinite one.
double share_of(double error, double of) {
  if (error == 0) return 0;
  return of == 0 || !std::isfinite(error) ? kInfinity : error / of;
}

// Calls `each` with every element's number, its difference and the magnitude that it is relative
// to, row after row, and `end` with each row's sum of squares and magnitude.
template <typename Each, typename End>
void for_each_error(std::span<const double> got, std::span<const double> wanted, std::size_t row,
                    double least, const Each& each, const End& end) {
  const double found = root_mean_square(wanted);
  for (std::size_t first = 0; first < wanted.size(); first += row) {
    const double of_row = root_mean_square(wanted.subspan(first, row));
    const double small = of_row == 0 ? kZeroRow * found : small_row_of(found);
    const double scale = std::max(found == 0 ? kSmallWhole : std::max(of_row, small), least);
    double squares = 0;
    for (std::size_t i = first; i < first + row; ++i) {
      const double error = difference(got[i], wanted[i]);
      squares += error * error;
      each(i, error, std::isfinite(wanted[i]) ? std::max(std::abs(wanted[i]), scale) : scale);
    }
    end(squares, scale);
  }
}

std::vector<double> values_of(const HostTensor& tensor) {
  const auto count = static_cast<std::size_t>(tensor.elements());
  if (is_float(tensor.dtype())) {
    std::vector<float> narrow(count);
    to_float(tensor.dtype(), tensor.data(), narrow.data(), count);
    return {narrow.begin(), narrow.end()};
  }
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = tensor.flat(static_cast<std::int64_t>(i));
  return values;
}

// exact: in float64 but for what is stored. varied: the same, and each result is changed by a
// random part of what rounding to its own type may change.
enum class Numbers : std::uint8_t { own, exact, varied };

// The outputs of the kernel's meaning, interpreted.
std::vector<std::vector<double>> interpreted(const Workload& workload, Numbers numbers) {
  Workload run = workload;
  run.poison_outputs();
  simulator::InterpreterOptions how;
  how.threads = 0;
  how.float64 = numbers != Numbers::own;
  if (numbers == Numbers::varied) how.rounding_seed = 0;
  run_meaning(run, how);
  std::vector<std::vector<double>> outputs;
  for (std::size_t i = 0; i < run.tensors.size(); ++i) {
    if (run.parameters[i]->is_output) outputs.push_back(values_of(run.tensors[i]));
  }
  return outputs;
}

// Numbers too small for a dtype of few exponents: that zero is all that a kernel can give of them.
bool is_stored_as_zero(DType dtype, double value) {
  const auto single = static_cast<float>(value);
  if (dtype == DType::f16) return f16_to_float(float_to_f16(single)) == 0;
  if (dtype == DType::f8e4m3) return f8e4m3_to_float(float_to_f8e4m3(single)) == 0;
  return false;
}

// What rounding the result once explains.
Errors of_store(DType dtype) {
  const double unit = unit_roundoff(dtype);
  return {0.6 * unit, 0.75 * unit, 1.6 * unit};
}

Errors larger(const Errors& a, const Errors& b) {
  return {std::max(a.whole, b.whole), std::max(a.row, b.row), std::max(a.element, b.element)};
}
Errors smaller(const Errors& a, const Errors& b) {
  return {std::min(a.whole, b.whole), std::min(a.row, b.row), std::min(a.element, b.element)};
}

bool is_finite(const Errors& errors) {
  return std::isfinite(errors.whole + errors.row + errors.element);
}

bool exceeds(const Errors& errors, const Errors& other) {
  return errors.whole > other.whole || errors.row > other.row || errors.element > other.element;
}

// 0 stands for what is no number, in each of two that are compared.
std::vector<double> without_nans(std::vector<double> values) {
  for (double& value : values) {
    if (std::isnan(value)) value = 0;
  }
  return values;
}

// How far the kernel's own types take each output from the reference: its meaning, interpreted.
// Nothing where it has none, as a machine form that was read from a file. Where numbers cancel the
// interpreter may err by nothing, as where it adds the same terms twice in the same order, and
// other orders leave what rounding each sum explains. Where the meaning itself is wrong, rounding
// is what lies between it in these types and in float64.
struct Measured {
  Errors errors;
  double factor = kInfinity;
};
std::vector<Measured> measured_errors(const Workload& workload, const Reference& reference,
                                      const std::vector<double>& least_of_outputs) {
  const LibraryKernel& kernel = *workload.kernel;
  const bool has_own = static_cast<bool>(kernel.rounded);
  if (!has_own && !kernel.build && !kernel.is_program()) return {};
  const std::vector<std::vector<double>> rounded =
      has_own ? kernel.rounded(workload.options, workload.inputs())
              : interpreted(workload, Numbers::own);
  std::vector<Measured> measured;
  std::vector<std::vector<double>> exact, varied;
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    if (!workload.parameters[i]->is_output) continue;
    const HostTensor& tensor = workload.tensors[i];
    const std::size_t output = measured.size();
    const std::vector<double>& wanted = reference.values[output];
    const bool cancels =
        !has_own && is_float(tensor.dtype()) && has_small_rows(wanted, row_of(tensor.shape()));
    if (cancels && varied.empty()) varied = interpreted(workload, Numbers::varied);
    const double least = least_of_outputs[output];
    const auto errors_against = [&](const auto& values_of, const std::vector<double>& right) {
      const Errors of_own = errors_of(values_of(rounded[output]), right, tensor.shape(), least);
      if (!cancels) return of_own;
      const Errors of_varied = errors_of(values_of(varied[output]), right, tensor.shape(), least);
      return is_finite(of_varied) ? larger(of_own, of_varied) : of_own;
    };
    const auto factor_against = [&](const std::vector<double>& right) {
      return factor_of(rounded[output], right, row_of(tensor.shape()), least).off;
    };
    auto& [errors, factor] =
        measured.emplace_back(Measured{errors_against(std::identity(), wanted), kInfinity});
    Errors stored;
    if (tensor.dtype() == DType::f32) {
      stored = {kSingle, kSingle, kSingle};
    } else if (is_float(tensor.dtype())) {
      stored = of_store(tensor.dtype());
    }
    // Numbers that run over in the kernel's types are no rounding.
    if (is_finite(errors)) {
      factor = factor_against(wanted);
    } else {
      errors = stored;
    }
    if (has_own || !exceeds(errors, stored)) continue;
    if (exact.empty()) exact = interpreted(workload, Numbers::exact);
    const std::vector<double>& meant = exact[output];
    if (!exceeds(errors_of(meant, wanted, tensor.shape(), least), stored)) continue;
    const Errors own = errors_against(without_nans, without_nans(meant));
    errors = smaller(errors, larger(own, stored));
    factor = std::min(factor, factor_against(meant));
  }
  return measured;
}

// Terms that a kernel rounds before it adds them. Which way each is rounded depends on where the
// blocks begin in which the kernel takes them, so that the interpreter's run does not tell.
void allow_rounded_terms(double rounding, const HostTensor& tensor,
                         const std::vector<double>& wanted, Errors& allowed) {
  const std::size_t row = row_of(tensor.shape());
  const double of_store = allowed_errors({}, tensor.dtype(), tensor.shape()).row / kRoom;
  const double of_terms = error_of_terms(rounding, static_cast<double>(row));
  allowed.row = std::max(allowed.row, std::hypot(of_terms, of_store));
  // One of the rows may err so far while the others do as usual. That matters where they are few.
  const double rows = std::max(factor_of(wanted, wanted, row, 0).rows, 1.0);
  allowed.whole =
      std::max(allowed.whole,
               std::hypot(allowed.row, std::sqrt(rows - 1) * allowed.whole) / std::sqrt(rows));
}

}  // namespace

void run_meaning(Workload& run, const simulator::InterpreterOptions& how) {
  const LibraryKernel& kernel = *run.kernel;
  OptionValues options = run.options;
  if (options.has("schedule")) options.set("schedule", "tile");
  if (kernel.is_program()) {
    const ir::Program bound = bind_workload(build_program(kernel, {nullptr, options, {}}).finish(),
                                            run, simulator::MachineOptions().multiprocessors);
    compiler::for_each_launch(
        bound, run.arguments(),
        [&, own = how](const ir::Kernel& each, const Arguments& arguments) mutable {
          simulator::interpret(each, arguments, own);
          if (own.rounding_seed) ++*own.rounding_seed;
        });
    return;
  }
  const ir::Kernel meaning =
      trace_entry(kernel, options, compiler::parse_target("interpreter")).finish();
  simulator::interpret(meaning, run.arguments(), how);
}

Errors errors_of(std::span<const double> got, std::span<const double> wanted,
                 const std::vector<std::int64_t>& shape, double least) {
  Errors errors;
  errors.least = least;
  double squares = 0;
  const std::size_t row = row_of(shape);
  for_each_error(
      got, wanted, row, least,
      [&](std::size_t, double error, double scale) {
        errors.element = std::max(errors.element, share_of(error, scale));
      },
      [&](double of_row, double scale) {
        squares += of_row;
        errors.row =
            std::max(errors.row, share_of(std::sqrt(of_row / static_cast<double>(row)), scale));
      });
  if (!wanted.empty()) {
    errors.whole = share_of(std::sqrt(squares / static_cast<double>(wanted.size())),
                            magnitude_of(wanted, least));
  }
  return errors;
}

Errors allowed_errors(const Errors& measured, DType dtype, const std::vector<std::int64_t>& shape) {
  // Integers that are rounded from floats, which rounding may take over to the next one.
  if (!is_float(dtype)) {
    return {kRoom * measured.whole, kRoom * measured.row, kElementRoom * measured.element};
  }
  const double unit = unit_roundoff(dtype);
  const double least = dtype == DType::f32 ? kSingle : 0;
  // Errors that are spread evenly over an ulp have this root mean square, over numbers of all
  // magnitudes. That of few of them scatters: six of its standard deviations.
  const double usual = 0.43 * unit;
  const auto scatter = [](double count) { return std::sqrt(1 + 6 / std::sqrt(count)); };
  double elements = 1;
  for (const std::int64_t extent : shape) elements *= static_cast<double>(extent);
  elements = std::max(elements, 1.0);
  const double row = static_cast<double>(row_of(shape));
  return {
      std::max(kRoom * std::max(measured.whole, usual * scatter(elements)), least),
      std::max(kRoom * std::max(measured.row, usual * scatter(row)), least),
      std::max({kElementRoom * std::max(measured.element, unit), kFarthest * measured.row, least})};
}

double OutputComparison::share() const {
  if (unwritten > 0) return kInfinity;
  return std::max({share_of(errors.whole, allowed.whole), share_of(errors.row, allowed.row),
                   share_of(errors.element, allowed.element), share_of(factor, allowed_factor)});
}

double Comparison::share() const {
  double largest = 0;
  for (const OutputComparison& output : outputs) largest = std::max(largest, output.share());
  return largest;
}

std::string Comparison::text() const {
  const auto worst = std::max_element(
      outputs.begin(), outputs.end(),
      [](const OutputComparison& a, const OutputComparison& b) { return a.share() < b.share(); });
  if (worst == outputs.end()) return {};
  std::string text = fmt::format(
      "{}: relative errors {:.3g} of the whole, {:.3g} of a row, {:.3g} of an element; rounding "
      "explains {:.3g}, {:.3g}, {:.3g}",
      worst->name, worst->errors.whole, worst->errors.row, worst->errors.element,
      worst->allowed.whole, worst->allowed.row, worst->allowed.element);
  if (share_of(worst->factor, worst->allowed_factor) > 1) {
    text += fmt::format("; a factor {:.3g} off, of which rounding explains {:.3g}", worst->factor,
                        worst->allowed_factor);
  }
  if (!worst->worst.empty()) text += "\n  " + worst->worst;
  return text;
}

Reference reference_of(const Workload& workload, Executed by) {
  Reference reference;
  reference.values = workload.kernel->reference(workload.options, workload.inputs());
  std::size_t next = 0;
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    if (!workload.parameters[i]->is_output) continue;
    for (double& value : reference.values[next]) {
      if (is_stored_as_zero(workload.tensors[i].dtype(), value)) value = 0;
    }
    ++next;
  }
  const std::vector<double> least = least_magnitudes(workload);
  const std::vector<Measured> of_types = measured_errors(workload, reference, least);
  const double of_bytes = by == Executed::by_hardware ? error_of_byte_products(workload) : 0;
  const double of_operands = workload.kernel->rounded ? 0 : rounding_of_operands(workload);
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    if (!workload.parameters[i]->is_output) continue;
    const HostTensor& tensor = workload.tensors[i];
    const std::size_t output = reference.allowed.size();
    Errors measured;
    if (!of_types.empty()) {
      measured = of_types[output].errors;
    } else if (is_float(tensor.dtype())) {
      measured = of_store(tensor.dtype());
    }
    // What the approximations of hardware have in common has not been measured.
    const bool has_factor = by == Executed::by_simulator && !of_types.empty();
    reference.allowed_factors.push_back(
        has_factor ? std::max(kRoom * of_types[output].factor, kSingle) : kInfinity);
    // Of independent errors the squares add up; the largest of many lies at some of these.
    constexpr double kTail = 5;
    if (is_float(tensor.dtype())) {
      measured.whole = std::hypot(measured.whole, of_bytes);
      measured.row = std::hypot(measured.row, of_bytes);
      measured.element = std::hypot(measured.element, kTail * of_bytes);
    }
    Errors allowed = allowed_errors(measured, tensor.dtype(), tensor.shape());
    if (of_operands > 0 && is_float(tensor.dtype()) && tensor.dtype() != DType::f32) {
      allow_rounded_terms(of_operands, tensor, reference.values[output], allowed);
    }
    const bool cancels =
        is_float(tensor.dtype()) && root_mean_square(reference.values[output]) == 0;
    if (cancels) {
      allowed.whole = std::max(allowed.whole, kCancelled);
      allowed.row = std::max(allowed.row, kCancelled);
      allowed.element = std::max(allowed.element, kFarthest * kCancelled);
    }
    allowed.least = least[output];
    reference.allowed.push_back(allowed);
  }
  return reference;
}

OutputComparison compare_tensor(const HostTensor& tensor, const std::vector<double>& wanted,
                                const std::string& name, const Errors& allowed,
                                const std::string& of_what) {
  const std::vector<double> got = values_of(tensor);
  OutputComparison result{name, errors_of(got, wanted, tensor.shape(), allowed.least), allowed, {}};
  double most = 0;
  for_each_error(
      got, wanted, row_of(tensor.shape()), allowed.least,
      [&](std::size_t i, double error, double scale) {
        if (share_of(error, scale) <= most) return;
        most = share_of(error, scale);
        result.worst = fmt::format("{}{} is {}, and {} {}", name,
                                   index_text(tensor.shape(), static_cast<std::int64_t>(i)),
                                   number_text(got[i]), number_text(wanted[i]), of_what);
      },
      [](double, double) {});
  return result;
}

void compare_factor(const HostTensor& tensor, const std::vector<double>& wanted,
                    OutputComparison& result) {
  const Factor factor =
      factor_of(values_of(tensor), wanted, row_of(tensor.shape()), result.allowed.least);
  if (factor.rows == 0) return;
  result.factor = factor.off;
  result.allowed_factor = factor_of_rounding(result.allowed.whole, factor.rows);
}

namespace {

// A reference that is an execution too leaves out what the kernel does. All of an output is to be
// written, but where it may depend on numbers that a launch gives.
bool writes_all(const LibraryKernel& kernel) {
  const bool is_file = !kernel.build && !kernel.is_program();
  return is_file && std::none_of(kernel.tensors.begin(), kernel.tensors.end(),
                                 [](const LibraryTensor& tensor) {
                                   return tensor.is_input() && is_integer(*tensor.dtype);
                                 });
}

// No computation makes a number of these bits.
void find_unwritten(const HostTensor& tensor, OutputComparison& result) {
  if (!is_float(tensor.dtype())) return;
  const auto size = static_cast<std::size_t>(size_of(tensor.dtype()));
  std::int64_t first = 0;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    const std::byte* element = tensor.data() + static_cast<std::size_t>(i) * size;
    if (!std::all_of(element, element + size, [](std::byte b) { return b == std::byte{0xff}; })) {
      continue;
    }
    if (result.unwritten++ == 0) first = i;
  }
  if (result.unwritten == 0) return;
  result.worst =
      fmt::format("nobody writes {}{}, and {} of {} elements in all", result.name,
                  index_text(tensor.shape(), first), result.unwritten, tensor.elements());
}

}  // namespace

Comparison compare(const Workload& workload, const Reference& reference) {
  Comparison result;
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    if (!workload.parameters[i]->is_output) continue;
    const std::size_t output = result.outputs.size();
    result.outputs.push_back(compare_tensor(workload.tensors[i], reference.values[output],
                                            workload.name_of(i), reference.allowed[output],
                                            "in float64"));
    OutputComparison& compared = result.outputs.back();
    compare_factor(workload.tensors[i], reference.values[output], compared);
    compared.allowed_factor = std::max(compared.allowed_factor, reference.allowed_factors[output]);
    if (writes_all(*workload.kernel)) find_unwritten(workload.tensors[i], compared);
  }
  return result;
}

}  // namespace tilewright::library
