#include "language/tracer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <sstream>
#include <unordered_set>

#include "ir/dim_order.h"
#include "language/canonical_order.h"
#include "language/names.h"
#include "support/callers.h"
#include "support/number_formats.h"
#include "target/target.h"

namespace tilewright {
namespace {

thread_local Tracer* current_tracer = nullptr;
std::atomic<std::uint64_t> next_serial{1};

bool takes_whole_warp(ir::Op op) {
  switch (ir::info(op).family) {
    case ir::Family::lane_order:
    case ir::Family::named_barrier:
    case ir::Family::cta_barrier:
    case ir::Family::cluster_barrier:
    case ir::Family::tensor_allocation:
    case ir::Family::tensor_wait:
      return true;
    case ir::Family::word:
      return op == ir::Op::atomic_add;  // hands its result to all lanes
    case ir::Family::tile:
      return op == ir::Op::reduce || op == ir::Op::any;
    case ir::Family::function:
    case ir::Family::constant:
    case ir::Family::position:
    case ir::Family::peer:
    case ir::Family::map_choice:
    case ir::Family::control:
    case ir::Family::place:
    case ir::Family::own_rows:
    case ir::Family::tile_access:
    case ir::Family::tile_product:
    case ir::Family::tile_copy:
    case ir::Family::pending:
    case ir::Family::view:
    case ir::Family::shared_tile:
    case ir::Family::fragment_tile:
    case ir::Family::prefetch:
    case ir::Family::array:
    case ir::Family::computation:
    case ir::Family::global_access:
    case ir::Family::matrix_access:
    case ir::Family::element_access:
    case ir::Family::fragment_access:
    case ir::Family::shared_word:
    case ir::Family::word_wait:
    case ir::Family::mbarrier:
    case ir::Family::fence:
    case ir::Family::check:
    case ir::Family::commit:
    case ir::Family::group_wait:
    case ir::Family::bulk_copy:
    case ir::Family::product:
    case ir::Family::product_fence:
    case ir::Family::tensor_tile:
    case ir::Family::tensor_tile_product:
    case ir::Family::tensor_access:
    case ir::Family::tensor_product:
    case ir::Family::tensor_copy:
    case ir::Family::tensor_commit:
    case ir::Family::tensor_fence:
    case ir::Family::launch_control:
    case ir::Family::register_budget:
    case ir::Family::core_memory:
    case ir::Family::core_window:
    case ir::Family::core_copy:
    case ir::Family::core_compute:
    case ir::Family::core_event:
      break;
  }
  return ir::info(op).agent == ir::Agent::warpgroup || ir::info(op).agent == ir::Agent::cta;
}

}  // namespace

namespace {

// What the author wrote to record it, where the operation's name is another.
std::string written_name(ir::Op op) {
  static const std::map<ir::Op, const char*> kWritten = {
      {ir::Op::red_tile, "atomic_add"},      {ir::Op::atomic_tile, "atom_add"},
      {ir::Op::store_tile, "store"},         {ir::Op::load_tile, "load"},
      {ir::Op::store_fragment, "store"},     {ir::Op::load_fragment, "load"},
      {ir::Op::tma_load_tile, "tma_load"},   {ir::Op::cluster_copy_tile, "cluster_copy"},
      {ir::Op::tma_store_tile, "tma_store"}, {ir::Op::tma_reduce_tile, "tma_reduce"},
      {ir::Op::named_sync, "sync"},          {ir::Op::named_arrive, "arrive"}};
  const auto found = kWritten.find(op);
  return found == kWritten.end() ? std::string(ir::info(op).name) : found->second;
}

// The serial numbers of the tracers that are there, of all threads.
class LiveTracers {
 public:
  void add(std::uint64_t serial) {
    const std::lock_guard lock(mutex_);
    serials_.insert(serial);
  }
  void remove(std::uint64_t serial) {
    const std::lock_guard lock(mutex_);
    serials_.erase(serial);
  }
  bool has(std::uint64_t serial) {
    const std::lock_guard lock(mutex_);
    return serials_.count(serial) != 0;
  }

 private:
  std::mutex mutex_;
  std::unordered_set<std::uint64_t> serials_;
};

// Never destroyed: a Kernel may be a static of another file.
LiveTracers& live() {
  static auto& tracers = *new LiveTracers;
  return tracers;
}

}  // namespace

Tracer::Tracer(std::string name, SourceLocation where) : serial_(next_serial++) {
  if (current_tracer && current_tracer->nested()) {
    Diagnostic(where, "Kernel: \"" + name + "\" begins inside a loop, condition or role of \"" +
                          current_tracer->kernel_.name + "\"")
        .token("Kernel")
        .note(current_tracer->frames_.back().where, "which is opened")
        .fix("trace one kernel at a time")
        .raise();
  }
  check_name(name, "Kernel", where);
  kernel_.name = std::move(name);
  kernel_.where = where;
  push(ir::Op::role, {}, where);
  current_tracer = this;
  live().add(serial_);
}

Tracer::~Tracer() {
  abandon();
  live().remove(serial_);
}

const Tracer& Tracer::of(const Handle& handle, const char* what) {
  if (handle.tracer() != nullptr && live().has(handle.serial())) return *handle.tracer();
  Diagnostic(
      {}, std::string(what) + (handle.tracer() == nullptr ? ": it holds no value"
                                                          : ": its kernel is not there any more"))
      .fix("use a kernel's values while its Kernel lives")
      .raise();
}

void Tracer::abandon() {
  if (current_tracer == this) current_tracer = nullptr;
}

Tracer* Tracer::current() { return current_tracer; }

Tracer& Tracer::get(const char* what, SourceLocation where) {
  if (!current_tracer || current_tracer->finished_) {
    Diagnostic(where, std::string(what) + ": no kernel is being traced")
        .token(what)
        .fix("make a Kernel first, and use its values before it is compiled or run")
        .raise();
  }
  return *current_tracer;
}

const ir::Kernel& Tracer::finish() {
  if (finished_) return kernel_;
  if (nested()) {
    Diagnostic(frames_.back().where,
               "a traced loop, condition or role of \"" + kernel_.name + "\" was left open")
        .fix("let the body of a traced loop run to its end: no break, return or exception")
        .raise();
  }
  const bool scheduled = kernel_.form == ir::Form::scheduled;
  if (kernel_.grid.empty()) {
    Diagnostic(kernel_.where, "\"" + kernel_.name + "\" has no grid")
        .token(kernel_.name)
        .fix(scheduled ? "call Kernel::ctas" : "call Kernel::grid; grid(1) is one block")
        .raise();
  }
  if (scheduled && kernel_.threads == 0) {
    Diagnostic(kernel_.where, "\"" + kernel_.name + "\" has no roles")
        .token(kernel_.name)
        .fix("call Kernel::roles")
        .raise();
  }
  for (const ir::Operation& place : places_) {
    if (place.op != ir::Op::mbarriers || place.attributes.integer(ir::Key::arrivals) != 0) continue;
    Diagnostic(place.where, "the ring behind \"" + place.attributes.text(ir::Key::name) +
                                "\" is never released: its producer would wait forever")
        .token("Ring")
        .fix("call Ring::release when a stage has been read")
        .raise();
  }
  std::vector<ir::Operation>& body = frames_.front().block.body;
  std::move(body.begin(), body.end(), std::back_inserter(places_));
  kernel_.body.body = std::move(places_);
  finished_ = true;
  order_canonically(kernel_);
  ir::canonicalise(kernel_);
  return kernel_;
}

void Tracer::note(ir::ValueId id, SourceLocation where) {
  locations_.resize(kernel_.types.size());
  scope_of_.resize(kernel_.types.size(), 0);
  locations_[id] = where;
  scope_of_[id] = frames_.back().scope;
}

ir::ValueId Tracer::use(const Handle& handle, const char* what, SourceLocation where) {
  if (!handle.tracer()) {
    Diagnostic(where, std::string(what) + ": an operand holds no value").token(what).raise();
  }
  if (current_tracer != this || handle.tracer() != this || handle.serial() != serial_) {
    Diagnostic(where, std::string(what) + ": an operand belongs to another kernel than \"" +
                          kernel_.name + "\"")
        .token(what)
        .fix("make every value inside the kernel that uses it")
        .raise();
  }
  if (finished_) {
    Diagnostic(where, std::string(what) + ": \"" + kernel_.name + "\" is already finished")
        .token(what)
        .raise();
  }
  if (!scope_open_[scope_of_[handle.id()]]) {
    Diagnostic(where,
               std::string(what) +
                   ": an operand was computed inside a loop, condition or role that has ended")
        .token(what)
        .note(locations_[handle.id()], "it is computed")
        .fix("keep it in a Var (Cell) made before the loop and assigned inside")
        .raise();
  }
  return handle.id();
}

ir::Operation& Tracer::append(ir::Op op, std::vector<ir::ValueId> operands,
                              std::vector<ir::Type> results, ir::Attributes attributes,
                              SourceLocation where) {
  where = with_caller(at_.file ? at_ : where);
  check_place(op, where);
  ir::Operation operation;
  operation.op = op;
  operation.operands = std::move(operands);
  operation.attributes = std::move(attributes);
  operation.where = where;
  for (ir::Type& type : results) {
    check_size(type, std::string(ir::info(op).name), where);
    operation.results.push_back(kernel_.add_value(std::move(type)));
    note(operation.results.back(), where);
  }
  if (op == ir::Op::dim) dims_.emplace(operation.results[0], operation.attributes.dim());
  if (op == ir::Op::constant) {
    const auto* value = std::get_if<std::int64_t>(operation.attributes.find(ir::Key::value));
    if (value) dims_.emplace(operation.results[0], *value);
  }
  body().push_back(std::move(operation));
  return body().back();
}

bool Tracer::reaches(ir::ValueId id, const Dim& dim) const {
  const auto at = dims_.find(id);
  return at != dims_.end() && ir::never_less(at->second, dim);
}

void Tracer::check_place(ir::Op op, SourceLocation where) const {
  const ir::OpInfo& info = ir::info(op);
  const std::string name = written_name(op);
  if (kernel_.form == ir::Form::scheduled && !info.in(ir::Form::scheduled)) {
    Diagnostic(where, name + ": it has no place at the explicit level")
        .token(name)
        .fix(op == ir::Op::dot
                 ? "use wgmma on tiles in shared memory (hopper.h), where the target has it"
                 : "bring it into shared memory with tma_load, then load(view)")
        .raise();
  }
  check_record(op, where);
  if (in_role_ && role_.warps % target::target_of(kernel_).limits.group_warps != 0 &&
      info.agent == ir::Agent::warpgroup) {
    Diagnostic(where, name + ": the role \"" + role_.name + "\" has " +
                          std::to_string(role_.warps) + " warps, and whole warpgroups do this")
        .token(name)
        .fix("give the role warpgroups(n)")
        .raise();
  }
  const bool elected = std::any_of(frames_.begin(), frames_.end(),
                                   [](const Frame& frame) { return frame.op == ir::Op::elect; });
  if (elected && takes_whole_warp(op)) {
    Diagnostic(where, name + ": one lane is elected, and all lanes of a warp do this")
        .token(name)
        .fix("call it before elect, or behind it")
        .raise();
  }
}

void Tracer::note_access(const ir::Parameter& tensor, Access access, const char* what,
                         SourceLocation where) {
  if (kernel_.form == ir::Form::scheduled) return;
  const auto [first, is_first] = accesses_.try_emplace(tensor.value, access, where);
  if (is_first || first->second.first == access) return;
  if (access != Access::other && first->second.first != Access::other) {
    Diagnostic(
        with_caller(at_.file ? at_ : where),
        std::string(what) + ": " + tensor.name + " is added to in the blocks' order and in any")
        .token(what)
        .note(first->second.second, "it is also added to")
        .fix("give all that adds to it the same Order: one in any order leaves the others none")
        .raise();
  }
  const bool adds = access != Access::other;
  Diagnostic(with_caller(at_.file ? at_ : where),
             std::string(what) + ": the kernel " + (adds ? "loads or stores " : "also adds to ") +
                 tensor.name)
      .token(what)
      .note(first->second.second, adds ? "which it does" : "it is added to")
      .fix(
          "load or store it in a kernel before or behind: here other blocks of the grid may add to "
          "it at the same time")
      .raise();
}

void Tracer::check_record(ir::Op op, SourceLocation where) const {
  if (kernel_.form != ir::Form::scheduled) return;
  const target::Target& target = target::target_of(kernel_);
  const ir::OpInfo& info = ir::info(op);
  const auto refuse = [&](const std::string& problem) {
    const std::string name = written_name(op);
    Diagnostic error(where, name + ": " + problem);
    if (target_where_.file) error.note(target_where_, target.name + " is named");
    error.token(name)
        .fix("write this kernel with what the target has, or for another target")
        .raise();
  };
  if (!target.has(info)) refuse(target.name + " has no such operation");
  if (const std::optional<target::Move> move = target.missing_move(info)) {
    refuse(target.name + " moves nothing from " + target.space(move->from).name + " to " +
           target.space(move->to).name);
  }
}

void Tracer::check_size(const ir::Type& type, const std::string& what, SourceLocation where) {
  if (!type.is_tile() && !type.is(ir::Type::Kind::shared)) return;
  std::int64_t elements = 1;
  const bool fits = std::all_of(type.shape.begin(), type.shape.end(), [&](std::int64_t extent) {
    return !__builtin_mul_overflow(elements, extent, &elements) && elements <= INT32_MAX;
  });
  if (fits) return;
  Diagnostic(where, what + ": " + type.to_string() + " has more than 2^31 - 1 elements")
      .token(what)
      .fix("take smaller blocks, or fewer stages")
      .raise();
}

ir::ValueId Tracer::integer(std::int64_t value, SourceLocation where) {
  if (value > INT32_MAX || value < INT32_MIN) {
    Diagnostic(where, "the integer " + std::to_string(value) + " does not fit 32 bits")
        .token(std::to_string(value))
        .fix("indices lie between -2147483648 and 2147483647")
        .raise();
  }
  return emit(ir::Op::constant, {}, ir::Type::scalar(i32), {{ir::Key::value, value}}, where);
}

ir::ValueId Tracer::number(double value, DType dtype, const char* what, SourceLocation where) {
  if (!is_float(dtype)) {
    const IntegerRange range = dtype == DType::boolean ? IntegerRange{0, 1} : range_of(dtype);
    const double least = static_cast<double>(range.low), most = static_cast<double>(range.high);
    // The greatest i64 is no double, and rounds up.
    const bool fits = value >= least && value <= most && (dtype != i64 || value < most);
    if (!fits || value != std::floor(value)) {
      std::ostringstream text;
      text << value;
      Diagnostic(where, std::string(what) + ": the number " + text.str() + " is no " +
                            std::string(name_of(dtype)))
          .token(what)
          .fix("use a number that the dtype holds, or convert the tile with .cast(f32)")
          .raise();
    }
    return emit(ir::Op::constant, {}, ir::Type::scalar(dtype),
                {{ir::Key::value, static_cast<std::int64_t>(value)}}, where);
  }
  return emit(ir::Op::constant, {}, ir::Type::scalar(dtype), {{ir::Key::value, value}}, where);
}

ir::ValueId Tracer::boolean(bool value, SourceLocation where) {
  return emit(ir::Op::constant, {}, ir::Type::scalar(DType::boolean),
              {{ir::Key::value, static_cast<std::int64_t>(value)}}, where);
}

ir::ValueId Tracer::dim(const Dim& dim, SourceLocation where) {
  if (dim.is_constant()) return integer(dim.constant(), where);
  check_dim(dim, where);
  return emit(ir::Op::dim, {}, ir::Type::scalar(i32), {{ir::Key::dim, dim}}, where);
}

void Tracer::check_dim(const Dim& dim, SourceLocation where) const {
  if (dim.is_constant()) return;
  if (dim.kind() != Dim::Kind::symbol) {
    check_dim(dim.lhs(), where);
    check_dim(dim.rhs(), where);
    return;
  }
  const bool known = dim.name() == ir::kMultiprocessors ||
                     std::find(kernel_.dims.begin(), kernel_.dims.end(), dim) != kernel_.dims.end();
  if (known) return;
  Diagnostic(at_.file ? at_ : where,
             "the dimension \"" + dim.name() + "\" is not one of \"" + kernel_.name + "\"")
      .token(dim.name())
      .fix("declare it: const Dim " + dim.name() + " = kernel.dim(\"" + dim.name() + "\")")
      .raise();
}

std::optional<std::int64_t> Tracer::known(ir::ValueId id) const {
  for (const ir::Operation& operation : frames_.back().block.body) {
    if (operation.op != ir::Op::constant || operation.results[0] != id) continue;
    const auto* value = std::get_if<std::int64_t>(operation.attributes.find(ir::Key::value));
    return value ? std::optional(*value) : std::nullopt;
  }
  return std::nullopt;
}

void Tracer::check_divisor(ir::Op op, ir::ValueId divisor, const char* what,
                           SourceLocation where) const {
  if (op != ir::Op::div && op != ir::Op::mod && op != ir::Op::ceildiv) return;
  if (known(divisor) != std::optional<std::int64_t>(0)) return;
  Diagnostic(where, std::string(what) + ": an integer is divided by 0")
      .token(what)
      .fix("where the divisor may be 0 divide by max(divisor, 1)")
      .raise();
}

void Tracer::require_open(const char* what, SourceLocation where) const {
  const std::string subject = std::string(what) + ": \"" + kernel_.name + '"';
  if (finished_) {
    Diagnostic(where, subject + " is already finished")
        .token(what)
        .fix("declare it before the kernel is compiled or run")
        .raise();
  }
  if (current_tracer == this) return;
  Diagnostic error(where, subject + " is not being traced any more");
  if (current_tracer) {
    error.note(current_tracer->kernel_.where, '"' + current_tracer->kernel_.name + "\" begins");
  }
  error.token(what)
      .fix("record all of a kernel before the next one begins, on the thread that has made it")
      .raise();
}

ir::ValueId Tracer::arithmetic(ir::Op op, ir::ValueId a, ir::ValueId b, SourceLocation where) {
  return emit(op, {a, b}, ir::Type::scalar(i32), {}, where);
}

ir::ValueId Tracer::place(ir::Op op, std::vector<ir::ValueId> operands, ir::Type result,
                          ir::Attributes attributes, SourceLocation where) {
  check_record(op, where);
  check_size(result, std::string(ir::info(op).name), where);
  ir::Operation operation;
  operation.op = op;
  operation.operands = std::move(operands);
  operation.attributes = std::move(attributes);
  operation.where = where;
  const ir::ValueId id = kernel_.add_value(std::move(result));
  operation.results = {id};
  note(id, where);
  scope_of_[id] = 0;
  places_.push_back(std::move(operation));
  return id;
}

ir::ValueId Tracer::tensor_map(ir::ValueId tensor, ir::Attributes attributes,
                               SourceLocation where) {
  for (const ir::Operation& place : places_) {
    if (place.op == ir::Op::tensor_map && place.operands[0] == tensor &&
        place.attributes == attributes) {
      return place.results[0];
    }
  }
  return this->place(ir::Op::tensor_map, {tensor}, ir::Type::of(ir::Type::Kind::tensor_map),
                     std::move(attributes), where);
}

ir::Operation& Tracer::place_operation(ir::ValueId place) {
  return *std::find_if(places_.begin(), places_.end(), [place](const ir::Operation& operation) {
    return operation.results[0] == place;
  });
}

void Tracer::check_count(const Dim& count, const char* what, const char* of,
                         SourceLocation where) const {
  check_dim(count, where);
  if (!count.is_constant() || (count.constant() >= 0 && count.constant() <= INT32_MAX)) return;
  Diagnostic(where, std::string(what) + ": " + count.to_string() + " " + of)
      .token(what)
      .fix("take 0 to 2^31 - 1")
      .raise();
}

void Tracer::require_no_grid(const char* what, SourceLocation where) const {
  require_open(what, where);
  if (kernel_.grid.empty()) return;
  Diagnostic(where, std::string(what) + ": the grid of \"" + kernel_.name + "\" is declared twice")
      .token(what)
      .fix("call Kernel::grid or Kernel::ctas once")
      .raise();
}

std::vector<Handle> Tracer::open_grid(std::vector<Dim> extents, SourceLocation where) {
  require_no_grid("grid", where);
  if (target_where_.file) {
    Diagnostic(where, "grid: \"" + kernel_.name + "\" is written for " + kernel_.target +
                          ", and a grid is of the tile level, which has no target")
        .token("grid")
        .note(target_where_, kernel_.target + " is named")
        .fix("call Kernel::ctas; or name no target, and compile the kernel for it")
        .raise();
  }
  std::vector<Handle> indices;
  for (const Dim& extent : extents) {
    check_count(extent, "grid", "blocks", where);
    kernel_.body.arguments.push_back(kernel_.add_value(ir::Type::scalar(i32)));
    indices.push_back(declare(kernel_.body.arguments.back(), where));
  }
  kernel_.grid = std::move(extents);
  return indices;
}

void Tracer::name_target(std::string_view name, SourceLocation where) {
  require_open("target", where);
  const auto refuse = [&](const std::string& problem, SourceLocation other, const char* what,
                          const char* fix) {
    Diagnostic(where, "target: " + problem).token("target").note(other, what).fix(fix).raise();
  };
  if (target_where_.file) {
    refuse("the target of \"" + kernel_.name + "\" is named twice", target_where_,
           "it is named first", "call Kernel::target once");
  }
  if (kernel_.form == ir::Form::scheduled) {
    refuse("\"" + kernel_.name + "\" is written for " + kernel_.target + " so far", explicit_where_,
           "its first explicit operation stands",
           "call Kernel::target before all else that is explicit");
  }
  kernel_.target = target::find_target(name, where).name;
  target_where_ = where;
  make_scheduled(where);
}

void Tracer::make_scheduled(SourceLocation where) {
  if (kernel_.form == ir::Form::scheduled) return;
  explicit_where_ = where;
  if (!kernel_.grid.empty()) {
    Diagnostic(where, "\"" + kernel_.name + "\" has a tile-level grid and explicit operations")
        .fix("use Kernel::ctas and roles at the explicit level")
        .raise();
  }
  kernel_.form = ir::Form::scheduled;
  if (kernel_.target.empty()) kernel_.target = ir::default_target();
  // What was recorded before it was known.
  for (const Frame& frame : frames_) {
    ir::for_each(frame.block, [this](const ir::Operation& o) { check_place(o.op, o.where); });
  }
}

}  // namespace tilewright
