#include "tilewright/plugin.h"

#include <exception>

#include "ir/text.h"
#include "tilewright/error.h"

namespace tilewright {

std::string text_of(const Kernel& kernel) { return ir::to_text(kernel.finish()); }

int give_kernel(std::initializer_list<Kernel (*)()> kernels, int number, void* context,
                PluginTake take) noexcept {
  if (number < 0 || number >= static_cast<int>(kernels.size())) return kNoSuchKernel;
  try {
    const Kernel kernel = kernels.begin()[number]();
    take(context, kernel.name().c_str(), text_of(kernel).c_str());
    return 0;
  } catch (const Error& error) {
    take(context, nullptr, error.what());
    return static_cast<int>(error.kind());
  } catch (const std::exception& error) {
    take(context, nullptr, error.what());
    return static_cast<int>(ErrorKind::internal);
  } catch (...) {
    take(context, nullptr, "error: a kernel of the plug-in throws what is no std::exception");
    return static_cast<int>(ErrorKind::internal);
  }
}

}  // namespace tilewright
