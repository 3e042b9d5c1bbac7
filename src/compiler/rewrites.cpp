#include "compiler/rewrites.h"

#include <algorithm>
#include <map>

#include "support/diagnostic.h"

namespace tilewright::compiler {

const std::vector<Rewrite>& all_rewrites() {
  static const std::vector<Rewrite> rewrites = {
      {"fold_accumulators", &Numerics::fold_accumulators, "x + dot(a, b) begins with x"},
      {"skip_hidden", &Numerics::skip_hidden,
       "blocks whose weights are all 0 are left out (0 x infinity was no number)"},
      {"contract_fma", &Numerics::contract_fma, "a * b + c rounds once"},
      {"sink_partial_sums", &Numerics::sink_partial_sums, "parts of a row are summed apart"},
      {"sink_partial_maxima", &Numerics::sink_partial_maxima,
       "lanes keep maxima apart (exact: the order alone changes)"},
      {"bf16_pairs", &Numerics::bf16_pairs, "two terms of bf16 products at a time",
       /*of_cpu=*/true},
  };
  return rewrites;
}

Numerics parse_numerics(const std::vector<std::string>& settings) {
  Numerics numerics;
  for (const std::string& setting : settings) {
    if (setting == "strict") {
      numerics = Numerics::strict();
      continue;
    }
    const std::size_t at = setting.find('=');
    const std::string name = setting.substr(0, at);
    const std::string value = at == std::string::npos ? "" : setting.substr(at + 1);
    const auto& known = all_rewrites();
    const auto rewrite = std::find_if(known.begin(), known.end(),
                                      [&](const Rewrite& each) { return each.name == name; });
    if (rewrite == known.end()) {
      std::string names;
      for (const Rewrite& each : known)
        names += (names.empty() ? "" : ", ") + std::string(each.name);
      Diagnostic({}, "--numerics " + setting + ": there is no rewrite '" + name + "'")
          .fix("write strict, or NAME=off of one of: " + names)
          .raise();
    }
    if (value != "on" && value != "off") {
      Diagnostic({}, "--numerics " + setting + ": '" + value + "' is neither on nor off")
          .fix("--numerics " + name + "=off")
          .raise();
    }
    numerics.*rewrite->allowed = value == "on";
  }
  return numerics;
}

std::vector<Approximation> approximations_in(const ir::Kernel& machine) {
  static const std::map<ir::Op, const char*> kInstructions = {
      {ir::Op::exp, "ex2.approx.ftz"}, {ir::Op::exp2, "ex2.approx.ftz"},
      {ir::Op::log, "lg2.approx"},     {ir::Op::log2, "lg2.approx"},
      {ir::Op::sqrt, "sqrt.approx"},   {ir::Op::rsqrt, "rsqrt.approx"},
      {ir::Op::rcp, "rcp.approx"},     {ir::Op::tanh, "tanh.approx"},
      {ir::Op::sin, "sin.approx"},     {ir::Op::cos, "cos.approx"},
      {ir::Op::div, "div.full"},       {ir::Op::exp2_polynomial, "a polynomial of degree 4"}};
  std::map<ir::Op, int> counts;
  ir::for_each(machine.body, [&](const ir::Operation& operation) {
    const bool computes = operation.op == ir::Op::compute;
    const ir::Op function = computes ? operation.attributes.function() : operation.op;
    if (kInstructions.count(function) == 0) return;
    const ir::ValueId result = computes ? operation.operands[0] : operation.results[0];
    if (is_float(machine.type(result).dtype)) ++counts[function];
  });
  std::vector<Approximation> found;
  for (const auto& [function, count] : counts) {
    found.push_back({std::string(ir::info(function).name), kInstructions.at(function), count});
  }
  return found;
}

}  // namespace tilewright::compiler
