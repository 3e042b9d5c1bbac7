#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tilewright/host_tensor.h"

// What makes data weak: whoever is wrong in some way passes on it all the same.
namespace tilewright::checks {

struct InputData {
  std::string name;
  const HostTensor* values = nullptr;
  // Whose elements the kernel reads, row-major; nothing: nobody knows.
  std::optional<std::vector<bool>> read = {};
  bool keeps_unread = false;     // an output too, which keeps what nobody reads
  bool may_be_in_order = false;  // numbers that count up mean something
};

// Each a sentence that begins with the tensor's name. A single number is never weak.
std::vector<std::string> weaknesses_of(const InputData& input);
// Of inputs beside each other.
std::vector<std::string> weaknesses_among(const std::vector<InputData>& inputs);
std::vector<std::string> weaknesses_of_result(const std::string& name,
                                              const std::vector<double>& expected);

}  // namespace tilewright::checks
