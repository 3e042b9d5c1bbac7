#include "check/user_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "support/diagnostic.h"

namespace tilewright::checks {

nlohmann::ordered_json parse_user_json(const std::string& text, const std::string& file,
                                       const std::string& fix) {
  using Json = nlohmann::ordered_json;
  const auto too_deep = [](int depth, Json::parse_event_t, Json&) {
    if (depth <= kMaxNesting) return true;
    throw std::length_error("deep");
  };
  const auto refuse = [&](const std::string& what) {
    Diagnostic({}, fmt::format("{}: {}", file, what)).fix(fix).raise();
  };
  try {
    return Json::parse(text, too_deep);
  } catch (const std::length_error&) {
    refuse(fmt::format("objects and lists nest more than {} deep", kMaxNesting));
  } catch (const Json::parse_error& error) {
    refuse(fmt::format("is no JSON, from byte {} on", error.byte));
  } catch (const Json::out_of_range& error) {
    refuse("is no JSON: a number is too large");
  }
  return {};
}

}  // namespace tilewright::checks
