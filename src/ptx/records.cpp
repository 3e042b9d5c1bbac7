#include <array>
#include <vector>

#include "ptx/record.h"

namespace tilewright::ptx {

std::span<const Record* const> all_records() {
  static const std::vector<const Record*> all = [] {
    std::vector<const Record*> found;
    for (const auto& list :
         {arithmetic_records(), float_records(), conversion_records(), control_records(),
          memory_records(), mbarrier_records(), bulk_records(), copy_records(), product_records(),
          tensor_memory_records(), launch_control_records()}) {
      for (const Record& record : list) found.push_back(&record);
    }
    return found;
  }();
  return all;
}

std::span<const Record* const> find_records(std::string_view words) {
  static const auto by_name = [] {
    std::map<std::string_view, std::vector<const Record*>> found;
    for (const Record* record : all_records()) found[record->name].push_back(record);
    return found;
  }();
  for (std::size_t end = words.size(); end != std::string_view::npos;) {
    const auto found = by_name.find(words.substr(0, end));
    if (found != by_name.end()) return found->second;
    end = end == 0 ? std::string_view::npos : words.rfind('.', end - 1);
  }
  return {};
}

}  // namespace tilewright::ptx
