#include "ir/text_dims.h"

#include <fmt/format.h>

#include <string>

#include "ir/dim_values.h"

namespace tilewright::ir {

Dim read_dim_clause(Scanner& in, const std::vector<Dim>& known) {
  const std::size_t begin = in.position();
  const std::string name(in.word("a dimension's name"));
  for (const Dim& dim : known) {
    if (dim.name() == name) in.fail(begin, fmt::format("dim {} is declared twice", name));
  }
  DimFacts facts;
  const std::size_t first = in.position();
  while (true) {
    std::int64_t* fact = in.accept_word("multiple_of") ? &facts.multiple
                         : in.accept_word("at_least")  ? &facts.minimum
                         : in.accept_word("at_most")   ? &facts.maximum
                                                       : nullptr;
    if (fact == nullptr) break;
    in.expect('(');
    const std::size_t at = in.position();
    *fact = in.integer();
    if (facts.multiple < 1) in.fail(at, "expected a positive multiple");
    in.expect(')');
  }
  if (!are_possible(facts)) in.fail(first, fmt::format("no size of {} has these facts", name));
  return Dim::symbol(name, facts);
}

Dim read_dim(Scanner& in, std::string_view ends, const std::vector<Dim>& known) {
  const std::size_t begin = in.position();
  const std::string_view text = in.until(ends);
  return in.within(begin, [&] { return Dim::parse(text, known); });
}

std::vector<Dim> read_dims(Scanner& in, char begin, char end, const std::vector<Dim>& known) {
  std::vector<Dim> result;
  const char ends[] = {',', end, '\0'};
  in.list(begin, end, [&] { result.push_back(read_dim(in, ends, known)); });
  return result;
}

}  // namespace tilewright::ir
