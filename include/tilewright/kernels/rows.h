#pragma once

#include "tilewright/kernel.h"
#include "tilewright/program.h"

// Functions of the rows of a matrix {rows, columns}, computed in f32, and their gradients. What a
// function below refuses is a usage error at its caller's line, `where`.
namespace tilewright::kernels {

// How a block of the grid goes over its rows: so many columns at a time.
struct RowBlocks {
  int rows = 4, columns = 1024;
  bool whole = false;  // no row has more columns than these, so that it is read once
};

// Y = (X - MEAN) RSTD weight + bias, with RSTD = 1 / sqrt(mean of (X - MEAN)^2 + epsilon).
// `centred`: a layer norm. Else an RMS norm, without MEAN. What is optional is not declared where
// it is not there; weight and bias are {columns}, and MEAN and RSTD f32 {rows}.
struct Norm {
  DType dtype = bf16;
  bool centred = false;
  bool weight = true, bias = false;
  double epsilon = 1e-5;
  RowBlocks blocks = {};
};
Kernel norm(const Norm& norm, SourceLocation where = here());
// X, weight, MEAN, RSTD and dY; dX, dweight and dbias.
Program norm_backward(const Norm& norm, SourceLocation where = here());

// Y = exp(X) / (sum of exp(X) along the row).
struct Softmax {
  DType dtype = bf16;
  RowBlocks blocks = {};
};
Kernel softmax(const Softmax& softmax, SourceLocation where = here());
// dX from Y and dY.
Kernel softmax_backward(const Softmax& softmax, SourceLocation where = here());

// Of each row of X the loss of the class that `targets`, i64 {rows}, names:
//   LSE - (1 - smoothing) X[target] - smoothing (mean of X), LSE the log-sum-exp of the row,
// f32 both. It is 0 for the target `ignore_index`, and infinite for others that are no class.
struct CrossEntropy {
  DType dtype = bf16;
  double smoothing = 0;
  int ignore_index = -100;
  RowBlocks blocks = {};
};
Kernel cross_entropy(const CrossEntropy& loss, SourceLocation where = here());
// dX from X, targets, LSE and dloss.
Kernel cross_entropy_backward(const CrossEntropy& loss, SourceLocation where = here());

}  // namespace tilewright::kernels
