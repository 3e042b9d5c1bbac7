#pragma once

#include <string>
#include <vector>

#include "ir/ir.h"
#include "ir/schedule.h"
#include "support/diagnostic.h"

namespace tilewright::schedules {

// A field of the schedule that a kernel is compiled by: what it became, and who said so.
struct ChosenField {
  std::string name, value;
  bool stated = false;  // else the compiler's choice
  SourceLocation where;
};

// A kernel of the scheduled form, with what was chosen for it.
struct Scheduled {
  ir::Kernel kernel;
  std::vector<ChosenField> fields;
};

template <typename T>
ChosenField chosen(const char* name, const ScheduleField<T>& field, std::string value) {
  return {name, std::move(value), field.is_set(), field.where()};
}

// The error of a field that the kernel cannot be compiled with, or that says nothing of it.
template <typename T>
Diagnostic refused(const char* name, const ScheduleField<T>& field, const std::string& why) {
  Diagnostic error(field.where(), std::string("schedule: ") + name + " = " +
                                      ir::value_text(field.value()) + ": " + why);
  error.token(name);
  return error;
}

}  // namespace tilewright::schedules
