#include "codegen/example_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>

#include "examples/all_reduce.h"
#include "examples/example.h"
#include "tilewright/compile.h"
#include "tilewright/distributed.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/softmax.h"
#include "tilewright/program.h"

// Each program in a namespace of its own, behind the headers of all: they repeat names.
#define main run_example
namespace alibi_example {
#define example_launch alibi_launch
#include "examples/alibi_sigmoid_attention.cpp"
#undef example_launch
}  // namespace alibi_example
namespace gather_example {
#include "examples/all_gather_gemm.cpp"
}  // namespace gather_example
namespace attention_example {
#include "examples/attention.cpp"
}  // namespace attention_example
namespace gemm_example {
#include "examples/explicit_gemm.cpp"
}  // namespace gemm_example
namespace mlp_example {
#define example_launch mlp_launch
#include "examples/fused_mlp.cpp"
#undef example_launch
}  // namespace mlp_example
namespace layernorm_example {
#define example_launch layernorm_launch
#include "examples/layernorm_gemm.cpp"
#undef example_launch
}  // namespace layernorm_example
namespace linear_example {
#define example_launch linear_launch
#include "examples/linear_attention.cpp"
#undef example_launch
}  // namespace linear_example
namespace mla_example {
#define example_launch mla_launch
#include "examples/mla_decode.cpp"
#undef example_launch
}  // namespace mla_example
namespace softmax_example {
#include "examples/softmax_rows.cpp"
}  // namespace softmax_example
#undef main

namespace tilewright::codegen {

std::vector<Kernel> example_kernels() {
  std::vector<Kernel> kernels;
  kernels.push_back(alibi_example::alibi_sigmoid_attention(4, 64, 0.125));
  kernels.push_back(examples::all_reduce());
  kernels.push_back(gather_example::relu());
  kernels.push_back(gather_example::multiply());
  kernels.push_back(attention_example::attention(4, 64));
  kernels.push_back(gemm_example::gemm());
  kernels.push_back(mlp_example::fused_mlp(128));
  kernels.push_back(layernorm_example::layernorm_gemm());
  kernels.push_back(linear_example::linear_attention(2, 128));
  kernels.push_back(mla_example::mla_decode());
  kernels.push_back(softmax_example::softmax_rows());
  return kernels;
}

}  // namespace tilewright::codegen
