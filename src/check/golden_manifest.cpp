#include "check/golden_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>

#include "check/user_json.h"
#include "support/diagnostic.h"
#include "support/file.h"

namespace tilewright::checks {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr std::size_t kMostNamed = 1 << 16;
constexpr std::size_t kMostAxes = 64;

Json json_of(const GoldenInput& input) {
  Json json = {
      {"name", input.name}, {"dtype", std::string(name_of(input.dtype))}, {"shape", input.shape}};
  if (!input.stated.empty()) {
    json["stated"] = input.stated;
    json["seed"] = input.seed;
  }
  if (input.poisoned > 0) json["poisoned"] = input.poisoned;
  if (!input.hash.empty()) json["hash"] = input.hash;
  return json;
}

Json json_of(const GoldenOutput& output) {
  const library::Errors& errors = output.allowed;
  Json allowed = {{"whole", errors.whole}, {"row", errors.row}, {"element", errors.element}};
  if (errors.least > 0) allowed["least"] = errors.least;
  return {{"name", output.name},
          {"dtype", std::string(name_of(output.dtype))},
          {"shape", output.shape},
          {"allowed", std::move(allowed)}};
}

Json json_of(const GoldenCase& each);

template <typename T>
Json list_of(const std::vector<T>& all) {
  Json list = Json::array();
  for (const T& each : all) list.push_back(json_of(each));
  return list;
}

Json json_of(const GoldenCase& each) {
  return {{"name", each.name},
          {"settings", each.settings},
          {"inputs", list_of(each.inputs)},
          {"outputs", list_of(each.outputs)},
          {"weaknesses", each.weaknesses}};
}

// Reads the JSON that somebody else may have written. Each function is told where in it, as
// "cases[0].inputs[1]".
class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  GoldenManifest manifest(const Json& json) const {
    check_keys(json, "the manifest", {"tilewright_golden", "kernel", "cases"});
    if (!json.contains("tilewright_golden") || json["tilewright_golden"] != kVersion) {
      fail("the manifest says no \"tilewright_golden\": 1",
           "name a folder that tilewright golden has written");
    }
    GoldenManifest manifest;
    manifest.kernel = text(json, "the manifest", "kernel");
    for (const auto& [at, each] : entries(json, "", "cases")) {
      manifest.cases.push_back(golden_case(*each, at));
    }
    check_names(manifest.cases, "cases");
    if (manifest.cases.empty()) fail("cases is empty", "run tilewright golden again");
    return manifest;
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& fix) const {
    Diagnostic({}, fmt::format("{}: {}", file_, what)).fix(fix).raise();
  }
  static std::string shown(const Json& json) {
    const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
    return text.size() > 60 ? text.substr(0, 57) + "..." : text;
  }

  void check_keys(const Json& json, const std::string& at,
                  std::initializer_list<const char*> known) const {
    if (!json.is_object()) fail(fmt::format("{} is {}, no object", at, shown(json)), "write { }");
    for (const auto& [key, value] : json.items()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      std::string list;
      for (const char* each : known) list += (list.empty() ? "" : ", ") + std::string(each);
      fail(fmt::format("{} has an entry \"{}\", which is not known", at, key),
           fmt::format("take one of: {}", list));
    }
  }
  const Json& member(const Json& json, const std::string& at, const char* key) const {
    const auto found = json.find(key);
    if (found == json.end()) {
      fail(fmt::format("{} has no \"{}\"", at, key), fmt::format("add \"{}\"", key));
    }
    return *found;
  }
  std::string text(const Json& json, const std::string& at, const char* key) const {
    const Json& value = member(json, at, key);
    if (!value.is_string()) {
      fail(fmt::format("{}: \"{}\" is {}, no text", at, key, shown(value)), "write \"...\"");
    }
    return value.get<std::string>();
  }
  std::int64_t count(const Json& value, const std::string& at) const {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > INT64_MAX) {
      fail(fmt::format("{} is {}, no size", at, shown(value)), "write a number from 0 on");
    }
    return value.get<std::int64_t>();
  }
  double bound(const Json& json, const std::string& at, const char* key) const {
    const Json& value = member(json, at, key);
    const double number = value.is_number() ? value.get<double>() : -1;
    if (!std::isfinite(number) || number < 0) {
      fail(fmt::format("{}: \"{}\" is {}, no bound", at, key, shown(value)),
           "write a relative error, such as 1e-3");
    }
    return number;
  }
  // The entries of a list, each with its place.
  std::vector<std::pair<std::string, const Json*>> entries(const Json& json, const std::string& at,
                                                           const char* key) const {
    const Json& list = member(json, at.empty() ? "the manifest" : at, key);
    if (!list.is_array()) {
      fail(fmt::format("{}\"{}\" is {}, no list", at.empty() ? "" : at + ": ", key, shown(list)),
           "write [ ]");
    }
    std::vector<std::pair<std::string, const Json*>> all;
    for (const Json& each : list) {
      all.emplace_back(fmt::format("{}{}{}[{}]", at, at.empty() ? "" : ".", key, all.size()),
                       &each);
    }
    return all;
  }
  std::vector<std::string> texts(const Json& json, const std::string& at, const char* key) const {
    std::vector<std::string> all;
    if (!json.contains(key)) return all;
    for (const auto& [place, each] : entries(json, at, key)) {
      if (!each->is_string())
        fail(fmt::format("{} is {}, no text", place, shown(*each)), "\"...\"");
      all.push_back(each->get<std::string>());
    }
    return all;
  }

  // Name, dtype and shape.
  template <typename Tensor>
  void read_tensor(const Json& json, const std::string& at, Tensor& tensor) const {
    tensor.name = text(json, at, "name");
    try {
      tensor.dtype = parse_dtype(text(json, at, "dtype"));
    } catch (const Error& error) {
      fail(fmt::format("{}: {}", at, error.message()), "write the kernel's own");
    }
    const auto extents = entries(json, at, "shape");
    if (extents.size() > kMostAxes) {
      fail(fmt::format("{}.shape has {} axes, and {} is the limit", at, extents.size(), kMostAxes),
           "write the kernel's own");
    }
    for (const auto& [place, extent] : extents) {
      tensor.shape.push_back(count(*extent, place));
    }
  }
  GoldenInput input(const Json& json, const std::string& at) const {
    check_keys(json, at, {"name", "dtype", "shape", "stated", "seed", "poisoned", "hash"});
    GoldenInput input;
    read_tensor(json, at, input);
    if (json.contains("stated")) input.stated = text(json, at, "stated");
    if (json.contains("hash")) input.hash = text(json, at, "hash");
    if (json.contains("poisoned")) input.poisoned = count(json["poisoned"], at + ".poisoned");
    if (!json.contains("seed")) return input;
    if (!json["seed"].is_number_unsigned()) {
      fail(fmt::format("{}.seed is {}", at, shown(json["seed"])), "write 0 to 2^64 - 1");
    }
    input.seed = json["seed"].get<std::uint64_t>();
    return input;
  }
  GoldenOutput output(const Json& json, const std::string& at) const {
    check_keys(json, at, {"name", "dtype", "shape", "allowed"});
    GoldenOutput output;
    read_tensor(json, at, output);
    const Json& allowed = member(json, at, "allowed");
    const std::string place = at + ".allowed";
    check_keys(allowed, place, {"whole", "row", "element", "least"});
    output.allowed = {bound(allowed, place, "whole"), bound(allowed, place, "row"),
                      bound(allowed, place, "element")};
    if (!allowed.contains("least")) return output;
    output.allowed.least = bound(allowed, place, "least");
    if (output.allowed.least > library::kLogarithm) {
      fail(fmt::format("{}.least is {}", place, output.allowed.least),
           fmt::format("write at most {}, as of logarithms", library::kLogarithm));
    }
    return output;
  }
  GoldenCase golden_case(const Json& json, const std::string& at) const {
    check_keys(json, at, {"name", "settings", "inputs", "outputs", "weaknesses"});
    GoldenCase read;
    read.name = text(json, at, "name");
    constexpr const char* kLetters =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    if (read.name.empty() || read.name.find_first_not_of(kLetters) != std::string::npos) {
      fail(fmt::format("{}: the name {} is no part of a file's name", at, shown(json["name"])),
           "take letters, digits, - and _");
    }
    read.settings = texts(json, at, "settings");
    read.weaknesses = texts(json, at, "weaknesses");
    for (const auto& [place, each] : entries(json, at, "inputs")) {
      read.inputs.push_back(input(*each, place));
    }
    for (const auto& [place, each] : entries(json, at, "outputs")) {
      read.outputs.push_back(output(*each, place));
    }
    check_names(read.inputs, at + ".inputs");
    check_names(read.outputs, at + ".outputs");
    return read;
  }
  template <typename Named>
  void check_names(const std::vector<Named>& all, const std::string& at) const {
    if (all.size() > kMostNamed) {
      fail(fmt::format("{} has {} entries", at, all.size()),
           fmt::format("write no more than {}", kMostNamed));
    }
    std::set<std::string> names;
    for (const Named& each : all) {
      if (!names.insert(each.name).second) {
        fail(fmt::format("{} names {} twice", at, each.name), "name each once");
      }
    }
  }

  std::string file_;
};

}  // namespace

std::string manifest_text(const GoldenManifest& manifest) {
  const Json json = {{"tilewright_golden", kVersion},
                     {"kernel", manifest.kernel},
                     {"cases", list_of(manifest.cases)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

GoldenManifest read_manifest(const std::string& path) {
  return parse_manifest(read_text(path), path);
}

GoldenManifest parse_manifest(const std::string& text, const std::string& file) {
  return Reader(file).manifest(parse_user_json(text, file, "run tilewright golden again"));
}

}  // namespace tilewright::checks
