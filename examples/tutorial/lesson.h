#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "tilewright/compile.h"
#include "tilewright/kernel.h"
#include "tilewright/program.h"

// What the lessons of docs/tutorial share.
namespace tilewright::tutorial {

// A kernel, tensors for it of which the last is its result, and what that should be.
struct Lesson {
  Kernel kernel;
  std::vector<HostTensor> tensors;
  std::function<std::vector<double>(const std::vector<HostTensor>&)> reference;  // in float64
  double bound;       // of the relative error
  double operations;  // of one run, on floating numbers
  const char* target = "cpu";
};

// docs/tutorial has the text of each.
Lesson first_tile();
Lesson rows();
Lesson variables();
Lesson products();
Lesson fused_layer();
Lesson attention();
Lesson asynchronous_attention();
// The last lesson checks itself: whether the gradients are those of the forward pass.
bool gradient();
// What it checks. The last three tensors are the gradients.
Program gradient_program();

// {rows, columns} of `a` times the transpose of `b`.
inline std::vector<double> product(const HostTensor& a, const HostTensor& b) {
  std::vector<double> sums;
  for (std::int64_t i = 0; i < a.shape()[0]; ++i) {
    for (std::int64_t j = 0; j < b.shape()[0]; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < a.shape()[1]; ++k) sum += a.at({i, k}) * b.at({j, k});
      sums.push_back(sum);
    }
  }
  return sums;
}

// softmax(Q K^T / 8) V of Q, K and V {n, 64}.
std::vector<double> attention_in_float64(const std::vector<HostTensor>& tensors);

}  // namespace tilewright::tutorial
