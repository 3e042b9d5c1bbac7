// The lessons of docs/tutorial: runs one, compares it with float64, and says how fast it is.
//
//     tutorial 3                                    lesson 3 on the CPU
//     tutorial 3 --target sim:sm_90a                on the simulated GPU; cuda for a real one
//     tutorial 3 --picture softmax.html             what the compiler makes of it

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "lesson.h"
#include "tilewright/explain.h"
#include "tilewright/program.h"

namespace tilewright::tutorial {
namespace {

Lesson (*const kLessons[])() = {
    first_tile, rows, variables, products, fused_layer, attention, asynchronous_attention};
constexpr int kGradient = static_cast<int>(std::size(kLessons)) + 1;

double relative_error(const HostTensor& got, const std::vector<double>& wanted) {
  double squares = 0, errors = 0;
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    const double want = wanted.at(static_cast<std::size_t>(i)), error = got.flat(i) - want;
    squares += want * want;
    errors += error * error;
  }
  return std::sqrt(errors / squares);  // NaN, where an element was not written
}

// Seconds of a run: the least of some.
double seconds_of(const std::function<void()>& run) {
  double least = 1e30;
  for (int i = 0; i < 5; ++i) {
    const auto started = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
    least = std::min(least, took.count());
  }
  return least;
}

// Runs it where the tensors lie, on the host. Kernels and programs are run alike. The seconds are
// those of one more run; 0 on what only stands for a GPU.
template <typename Compiled>
double run_on_host(const Compiled& executable, std::vector<HostTensor>& tensors,
                   const std::string& target) {
  std::vector<TensorRef> refs;
  for (HostTensor& tensor : tensors) refs.push_back(ref(tensor));
  const auto run = [&] { executable.run(refs); };
  run();
  return target == "cpu" ? seconds_of(run) : 0;
}

// A program has memory of its own on the GPU, and moves tensors there and back.
double run_on_gpu(const Program& program, ProgramMemory memory, std::vector<HostTensor>& tensors) {
  memory.tensors[0] = tensors;
  ProgramExecutable executable = compile(program, "cuda");
  executable.load(memory);
  executable.run();
  executable.store(memory);
  tensors = memory.tensors[0];
  constexpr int kRuns = 100;
  return seconds_of([&] { executable.run(kRuns); }) / kRuns;
}

// The kernel alone, as a program.
Program program_of(const Kernel& kernel, const std::vector<HostTensor>& tensors) {
  Program program(kernel.name());
  std::vector<Part> parts;
  for (const HostTensor& tensor : tensors) {
    parts.push_back(program.inout("tensor" + std::to_string(parts.size()), tensor.dtype(),
                                  {tensor.shape().begin(), tensor.shape().end()}));
  }
  program.rank(0).stream().launch(kernel, parts);
  return program;
}

void say_speed(double seconds, double operations) {
  if (seconds > 0) {
    std::printf("  %.1f us, %.2f GFLOP/s\n", seconds * 1e6, operations / seconds * 1e-9);
  } else {
    std::printf("  its speed is a GPU's: --target cuda\n");
  }
}

bool teach(Lesson lesson, std::string target) {
  if (target.empty()) target = lesson.target;
  double seconds = 0;
  if (target == "cuda") {
    const Program program = program_of(lesson.kernel, lesson.tensors);
    seconds = run_on_gpu(program, ProgramMemory(program), lesson.tensors);
  } else {
    seconds = run_on_host(compile(lesson.kernel, target), lesson.tensors, target);
  }
  const double error = relative_error(lesson.tensors.back(), lesson.reference(lesson.tensors));
  std::printf("%s on %s: relative error %.1e against float64, %.1e is allowed\n",
              lesson.kernel.name().c_str(), target.c_str(), error, lesson.bound);
  say_speed(seconds, lesson.operations);
  return error < lesson.bound;
}

// What check_gradients has said is right, on a target: beside what the interpreter makes of it.
bool teach_gradient(std::string target) {
  if (!gradient()) return false;
  if (target.empty()) target = "cpu";
  const Program program = gradient_program();
  constexpr std::int64_t kQueries = 256, kKeys = 256;
  const ProgramMemory memory(program, {{"queries", kQueries}, {"keys", kKeys}});
  std::vector<HostTensor> wanted = memory.tensors[0], got = wanted;
  run_on_host(compile(program, "interpreter"), wanted, "interpreter");
  const double seconds = target == "cuda" ? run_on_gpu(program, memory, got)
                                          : run_on_host(compile(program, target), got, target);
  constexpr double kBound = 6e-3;
  double error = 0;
  for (std::size_t i = wanted.size() - 3; i < wanted.size(); ++i) {  // the gradients
    std::vector<double> values;
    for (std::int64_t j = 0; j < wanted[i].elements(); ++j) values.push_back(wanted[i].flat(j));
    const double each = relative_error(got[i], values);
    error = each <= error ? error : each;  // NaN stays
  }
  std::printf("%s on %s: relative error %.1e against the interpreter, %.1e is allowed\n",
              program.name().c_str(), target.c_str(), error, kBound);
  say_speed(seconds, 7 * 2.0 * kQueries * kKeys * 64);  // seven products
  return error < kBound;
}

void draw(const std::string& page, const std::string& file) {
  if (!(std::ofstream(file) << page).flush()) {
    std::fprintf(stderr, "error: %s cannot be written\n", file.c_str());
    std::exit(2);
  }
  std::printf("  its picture: %s\n", file.c_str());
}

[[noreturn]] void refuse() {
  std::fprintf(stderr, "usage: tutorial 1..%d [--target TARGET] [--picture FILE.html]\n",
               kGradient);
  std::exit(2);
}

int run(int argc, char** argv) {
  const int number = argc > 1 ? std::atoi(argv[1]) : 0;
  if (number < 1 || number > kGradient || argc % 2 != 0) refuse();
  std::string target, picture;
  for (int i = 2; i < argc; i += 2) {
    if (std::strcmp(argv[i], "--target") == 0) {
      target = argv[i + 1];
    } else if (std::strcmp(argv[i], "--picture") == 0) {
      picture = argv[i + 1];
    } else {
      refuse();
    }
  }
  if (!picture.empty()) {
    draw(number == kGradient ? explain_page(gradient_program(), "sm_90a")
                             : explain_page(kLessons[number - 1]().kernel, "sm_90a"),
         picture);
  }
  const bool is_right =
      number == kGradient ? teach_gradient(target) : teach(kLessons[number - 1](), target);
  return is_right ? 0 : 1;
}

}  // namespace
}  // namespace tilewright::tutorial

int main(int argc, char** argv) {
  try {
    return tilewright::tutorial::run(argc, argv);
  } catch (const tilewright::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
