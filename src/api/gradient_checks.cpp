#include "tilewright/check_gradients.h"

#include <fmt/format.h>

#include <algorithm>

#include "check/gradients.h"
#include "compiler/device_tensors.h"
#include "compiler/target.h"
#include "tilewright/compile.h"

namespace tilewright {
namespace {

template <typename Pass>
void run_on(const Pass& pass, const std::string& target, std::vector<HostTensor>& tensors,
            const std::vector<double>& scalars) {
  const auto executable = compile(pass, target);
  if (compiler::parse_target(target).kind == compiler::Target::Kind::cuda) {
    const compiler::DeviceTensors on_device(tensors);
    executable.run(on_device.refs(), scalars, on_device.stream().handle());
    on_device.synchronize();
    on_device.download(tensors);
    return;
  }
  std::vector<TensorRef> refs;
  for (HostTensor& tensor : tensors) refs.push_back(ref(tensor));
  executable.run(refs, scalars);
}

template <typename Forward, typename Backward>
GradientReport check(const Forward& forward, const Backward& backward,
                     const GradientOptions& options) {
  return checks::check_gradients(
      checks::GradientPass(forward.finish()), checks::GradientPass(backward.finish()), options,
      [&](std::vector<HostTensor>& tensors, const std::vector<double>& scalars) {
        run_on(backward, options.target, tensors, scalars);
      });
}

}  // namespace

bool GradientReport::ok() const {
  return std::all_of(gradients.begin(), gradients.end(),
                     [](const GradientCheck& each) { return each.ok(); });
}

std::string GradientReport::text() const {
  std::string text;
  for (const GradientCheck& each : gradients) {
    text += fmt::format(
        "{}, the gradient of {}: {}\n"
        "  in float64: relative error {:.2e} of {:.0e} allowed: by differences {:.9g}, by {} "
        "{:.9g}\n"
        "  in its own types: relative error {:.2e} of {:.2e} that rounding explains\n",
        each.gradient, each.of, each.ok() ? "ok" : "WRONG", each.error, each.allowed,
        each.by_differences, each.gradient, each.by_gradient, each.own_error, each.own_allowed);
  }
  return text;
}

GradientReport check_gradients(const Kernel& forward, const Kernel& backward,
                               const GradientOptions& options) {
  return check(forward, backward, options);
}
GradientReport check_gradients(const Kernel& forward, const Program& backward,
                               const GradientOptions& options) {
  return check(forward, backward, options);
}
GradientReport check_gradients(const Program& forward, const Kernel& backward,
                               const GradientOptions& options) {
  return check(forward, backward, options);
}
GradientReport check_gradients(const Program& forward, const Program& backward,
                               const GradientOptions& options) {
  return check(forward, backward, options);
}

}  // namespace tilewright
