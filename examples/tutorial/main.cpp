// The lessons of docs/tutorial: runs one, compares it with float64, and says how fast it is.
//
//     tutorial 3                                    lesson 3 on the CPU
//     tutorial 3 --target sim:sm_90a                on the simulated GPU, or on cuda
//     tutorial 3 --picture softmax.html             what the compiler makes of it

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "lesson.h"
#include "tilewright/explain.h"

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

// Seconds of one run: the least of some.
double seconds_of(const Executable& executable, const std::vector<TensorRef>& tensors) {
  double least = 1e30;
  for (int i = 0; i < 5; ++i) {
    const auto started = std::chrono::steady_clock::now();
    executable.run(tensors);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
    least = std::min(least, took.count());
  }
  return least;
}

bool teach(Lesson lesson, std::string target) {
  if (target.empty()) target = lesson.target;
  const Executable executable = compile(lesson.kernel, target);
  std::vector<TensorRef> tensors;
  for (HostTensor& tensor : lesson.tensors) tensors.push_back(ref(tensor));
  executable.run(tensors);
  const double error = relative_error(lesson.tensors.back(), lesson.reference(lesson.tensors));
  std::printf("%s on %s: relative error %.1e against float64, %.1e is allowed\n",
              lesson.kernel.name().c_str(), target.c_str(), error, lesson.bound);
  if (target == "cpu") {
    const double seconds = seconds_of(executable, tensors);
    std::printf("  %.1f us, %.2f GFLOP/s\n", seconds * 1e6, lesson.operations / seconds * 1e-9);
  }
  return error < lesson.bound;
}

void draw(const Kernel& kernel, const std::string& file) {
  std::ofstream(file) << explain_page(kernel, "sm_90a");
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
  if (number == kGradient) return gradient() ? 0 : 1;
  if (!picture.empty()) draw(kLessons[number - 1]().kernel, picture);
  return teach(kLessons[number - 1](), target) ? 0 : 1;
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
