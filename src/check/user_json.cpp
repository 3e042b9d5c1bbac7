#include "check/user_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/diagnostic.h"

namespace tilewright::checks {

nlohmann::ordered_json parse_user_json(const std::string& text, const std::string& file,
                                       const std::string& fix) {
  using Json = nlohmann::ordered_json;
  const auto refuse = [&](const std::string& what) {
    Diagnostic({}, fmt::format("{}: {}", file, what)).fix(fix).raise();
  };
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto check = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kMaxNesting) throw std::length_error("deep");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value).second) {
      refuse(fmt::format("{} is there twice", value.dump()));
    }
    return true;
  };
  try {
    return Json::parse(text, check);
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
