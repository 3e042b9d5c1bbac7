#include "tilewright/explain.h"

#include "driver/explanation.h"
#include "driver/report/explanation_json.h"
#include "driver/report/page.h"

namespace tilewright {

std::string explain_json(const Kernel& kernel, std::string_view target, const Numerics& numerics) {
  return driver::explanation_json(driver::explain(kernel, driver::parse_target(target), numerics));
}

std::string explain_page(const Kernel& kernel, std::string_view target, const Numerics& numerics) {
  return driver::page(driver::explain(kernel, driver::parse_target(target), numerics));
}

}  // namespace tilewright
