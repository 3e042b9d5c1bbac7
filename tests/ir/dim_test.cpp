#include "tilewright/dim.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "ir/dim_order.h"
#include "tilewright/error.h"

namespace tilewright {
namespace {

const Dim n = Dim::symbol("n");
const Dim k = Dim::symbol("k", {8, 16, 4096});
const Dim any = Dim::symbol("any", {1, -100, 100});

std::int64_t evaluate(const Dim& dim, const std::map<std::string, std::int64_t>& values) {
  return dim.evaluate([&values](const std::string& name) { return values.at(name); });
}

TEST(Dim, Simplifies) {
  const std::pair<Dim, const char*> cases[] = {
      {Dim(3) + 4, "7"},
      {n + 0, "n"},
      {0 + n, "n"},
      {4 + n, "(n + 4)"},
      {n - 0, "n"},
      {n - n, "0"},
      {n * 1, "n"},
      {1 * n, "n"},
      {n * 0, "0"},
      {3 * n, "(n * 3)"},
      {n / 1, "n"},
      {(n * 12) / 4, "(n * 3)"},
      {(n * 12) / 5, "((n * 12) // 5)"},
      {ceil_div(n * 12, 4), "(n * 3)"},
      {ceil_div(n, 8), "ceil_div(n, 8)"},
      {ceil_div(k, 8), "(k // 8)"},
      {k % 8, "0"},
      {k % 4, "0"},
      {k % 16, "(k % 16)"},
      {(k * n) % 8, "0"},
      {(k + 16) % 8, "0"},
      {(k + 3) % 8, "((k + 3) % 8)"},
      {min(n, n), "n"},
      {min(k, 16), "16"},
      {min(k, 4096), "k"},
      {min(k, 100), "min(k, 100)"},
      {max(n, 0), "n"},
      {max(k, 16), "k"},
      {max(k, 5000), "5000"},
      {max(n, k), "max(n, k)"},
      {Dim(-7) / 2, "-4"},
      {Dim(-7) % 2, "1"},
      {ceil_div(Dim(-7), 2), "-3"},
  };
  for (const auto& [dim, expected] : cases) EXPECT_EQ(dim.to_string(), expected);
}

// Every expression of two operands, against plain arithmetic, its own range and its own text.
TEST(Dim, EvaluatesInsideItsRange) {
  const auto floor_of = [](double x) { return static_cast<std::int64_t>(std::floor(x)); };
  const std::vector<Dim> known = {n, k, any};
  for (const Dim::Kind kind :
       {Dim::Kind::add, Dim::Kind::sub, Dim::Kind::mul, Dim::Kind::floordiv, Dim::Kind::ceildiv,
        Dim::Kind::mod, Dim::Kind::min, Dim::Kind::max}) {
    for (const Dim& a : {n, k, any, any * 6 - k, Dim(24), Dim(-7)}) {
      for (const Dim& b : {n + 1, k, any, Dim(8), Dim(-3), k / 8}) {
        const Dim dim = Dim::binary(kind, a, b);
        EXPECT_EQ(Dim::parse(dim.to_string(), known), dim) << dim.to_string();
        for (const std::int64_t i : {0, 1, 7, 64, 1000}) {
          for (const std::int64_t j : {-100, -3, 5, 100}) {
            const std::map<std::string, std::int64_t> values = {
                {"n", i}, {"k", 16 + 8 * (i / 2)}, {"any", j}};
            const std::int64_t x = evaluate(a, values), y = evaluate(b, values);
            std::int64_t expected = 0;
            switch (kind) {
              case Dim::Kind::add:
                expected = x + y;
                break;
              case Dim::Kind::sub:
                expected = x - y;
                break;
              case Dim::Kind::mul:
                expected = x * y;
                break;
              case Dim::Kind::min:
                expected = x < y ? x : y;
                break;
              case Dim::Kind::max:
                expected = x < y ? y : x;
                break;
              case Dim::Kind::floordiv:
                expected = floor_of(double(x) / double(y));
                break;
              case Dim::Kind::ceildiv:
                expected = -floor_of(-double(x) / double(y));
                break;
              default:
                expected = x - floor_of(double(x) / double(y)) * y;
            }
            const std::int64_t got = evaluate(dim, values);
            EXPECT_EQ(got, expected) << dim.to_string() << " of " << x << " and " << y;
            const DimFacts facts = dim.range();
            EXPECT_LE(facts.minimum, got) << dim.to_string();
            EXPECT_GE(facts.maximum, got) << dim.to_string();
            EXPECT_EQ(got % facts.multiple, 0) << dim.to_string() << " = " << got;
          }
        }
      }
    }
  }
}

TEST(Dim, Ranges) {
  struct Case {
    Dim dim;
    DimFacts facts;
  };
  const Case cases[] = {
      {k, {8, 16, 4096}},        {k + 4, {4, 20, 4100}},          {k * 3, {24, 48, 12288}},
      {k / 8, {1, 2, 512}},      {k / 4, {2, 4, 1024}},           {ceil_div(k, 100), {1, 1, 41}},
      {n % 5, {1, 0, 4}},        {any * -2, {2, -200, 200}},      {k - 8, {8, 8, 4088}},
      {min(k, n), {1, 0, 4096}}, {max(k, n), {1, 16, INT32_MAX}},
  };
  for (const Case& each : cases) {
    const DimFacts facts = each.dim.range();
    EXPECT_EQ(facts.multiple, each.facts.multiple) << each.dim.to_string();
    EXPECT_EQ(facts.minimum, each.facts.minimum) << each.dim.to_string();
    EXPECT_EQ(facts.maximum, each.facts.maximum) << each.dim.to_string();
  }
}

TEST(Dim, OverflowAndDivisionByZeroAreErrors) {
  const Dim largest(INT64_MAX), smallest(INT64_MIN);
  EXPECT_THROW((void)(largest + 1), Error);
  EXPECT_THROW((void)(smallest - 1), Error);
  EXPECT_THROW((void)(largest * 2), Error);
  EXPECT_THROW((void)(smallest / -1), Error);
  EXPECT_THROW((void)ceil_div(smallest, -1), Error);
  EXPECT_EQ((smallest % -1).constant(), 0);
  EXPECT_THROW((void)(n / 0), Error);
  EXPECT_THROW((void)(n % 0), Error);
  EXPECT_THROW((void)ceil_div(n, 0), Error);
  EXPECT_THROW((void)evaluate(n / k, {{"n", 1}, {"k", 0}}), Error);
  EXPECT_THROW((void)evaluate(n * n, {{"n", INT64_MAX}}), Error);
}

// What a launch's values make impossible is said with the expression and the values.
TEST(Dim, MessagesShowTheExpressionAndItsValues) {
  const Dim pages = Dim::symbol("block_num"), page = Dim::symbol("block_size");
  const auto message = [](const Dim& dim, const std::map<std::string, std::int64_t>& values) {
    try {
      return std::to_string(evaluate(dim, values));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return error.message();
    }
  };
  const std::map<std::string, std::int64_t> vast = {{"block_num", 1LL << 40},
                                                    {"block_size", 1LL << 30}};
  EXPECT_EQ(message(pages * page, {{"block_num", 3}, {"block_size", 16}}), "48");
  EXPECT_EQ(message(pages * page + 1, vast),
            "(block_num * block_size) overflows 64 bits: block_num = 1099511627776, block_size = "
            "1073741824");
  EXPECT_EQ(message(Dim(0) - pages - page * 2, {{"block_num", INT64_MAX}, {"block_size", 1}}),
            "((0 - block_num) - (block_size * 2)) overflows 64 bits: block_num = "
            "9223372036854775807, block_size = 1");
  for (const auto& [dim, text] : {std::pair(pages / page, "(block_num // block_size)"),
                                  std::pair(pages % page, "(block_num % block_size)"),
                                  std::pair(ceil_div(pages, page),
                                            "ceil_div(block_num, "
                                            "block_size)")}) {
    EXPECT_EQ(message(max(dim, 1), {{"block_num", 7}, {"block_size", 0}}),
              std::string(text) + " divides by zero: block_num = 7, block_size = 0");
  }
  EXPECT_EQ(message(pages / page, {{"block_num", INT64_MIN}, {"block_size", -1}}),
            "(block_num // block_size) overflows 64 bits: block_num = -9223372036854775808, "
            "block_size = -1");
  EXPECT_EQ(message(pages % page, {{"block_num", INT64_MIN}, {"block_size", -1}}), "0");
  // A divisor has another fix than a number that is too large, which has none.
  const auto fix = [](const Dim& dim, const std::map<std::string, std::int64_t>& values) {
    try {
      return std::to_string(evaluate(dim, values));
    } catch (const Error& error) {
      return error.fix();
    }
  };
  EXPECT_EQ(fix(pages * page, vast), "");
  EXPECT_EQ(fix(pages / page, {{"block_num", 7}, {"block_size", 0}}),
            "where the divisor may be 0 divide by max(divisor, 1)");
}

TEST(Dim, FactsSurviveOverflow) {
  const Dim wide = Dim::symbol("wide", {std::int64_t{1} << 40, 0, INT64_MAX});
  const DimFacts facts = (wide * wide).range();
  EXPECT_EQ((std::int64_t{1} << 40) % facts.multiple, 0);
  EXPECT_EQ(facts.maximum, INT64_MAX);
  constexpr std::int64_t kPowerOf3 = 205891132094649;  // the 30th
  const Dim odd = Dim::symbol("odd", {kPowerOf3, 0, INT64_MAX});
  EXPECT_EQ((odd * odd).range().multiple, kPowerOf3);
  EXPECT_EQ((Dim(0) - Dim::symbol("low", {1, INT64_MIN, 0})).range().maximum, INT64_MAX);
}

// Where the machine's own division would end the process.
TEST(Dim, TheLeastNumberByMinusOne) {
  const Dim least = n * INT64_MIN, by = Dim::symbol("by", {1, -2, -1});
  EXPECT_EQ(evaluate(least / -1, {{"n", 0}}), 0);
  EXPECT_THROW((void)evaluate(least / -1, {{"n", 1}}), Error);
  EXPECT_EQ(evaluate(least % by, {{"n", 1}, {"by", -1}}), 0);
}

TEST(Dim, ExpressionsThatDoubleForeverAreErrors) {
  const auto doubled = [](int times) {
    Dim dim = Dim::symbol("n");
    for (int i = 0; i < times; ++i) dim = dim + dim;
    return dim;
  };
  EXPECT_EQ(doubled(13).evaluate([](const std::string&) { return 1; }), 8192);
  try {
    doubled(60);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("more than 10000 operations"), std::string::npos);
  }
}

TEST(Dim, APartThatIsSharedIsEvaluatedOnce) {
  const Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  int lookups = 0;
  const auto lookup = [&](const std::string& name) {
    ++lookups;
    return name == "n" ? std::int64_t{3} : std::int64_t{5};
  };
  Dim doubled = n * m;
  for (int i = 0; i < 10; ++i) doubled = doubled + doubled;
  EXPECT_EQ(doubled.evaluate(lookup), 15 * 1024);
  EXPECT_EQ(lookups, 2);
  // More parts than are remembered at a time.
  Dim sum = 0;
  std::int64_t wanted = 0;
  for (int i = 1; i <= 300; ++i) {
    const Dim part = n + i;
    sum = sum + part * part;
    wanted += (3 + i) * (3 + i);
  }
  EXPECT_EQ(sum.evaluate(lookup), wanted);
}

TEST(Dim, EqualityIsStructural) {
  EXPECT_TRUE(n + 1 == n + 1);
  EXPECT_FALSE(n + 1 == n + 2);
  EXPECT_FALSE(n + k == k + n);
  EXPECT_TRUE(Dim::symbol("n") == n);
}

TEST(Dim, IsNeverLessThanTheSameTermsWithLessBesideThem) {
  using ir::never_less;
  EXPECT_TRUE(never_less(n, n));
  EXPECT_TRUE(never_less(n + 1, n));
  EXPECT_FALSE(never_less(n, n + 1));
  EXPECT_TRUE(never_less(2 * n + k, k + n + n - 3));
  EXPECT_FALSE(never_less(2 * n, n + k));
  EXPECT_TRUE(never_less(Dim(64), Dim(64)));
  EXPECT_FALSE(never_less(Dim(63), Dim(64)));
  // By what is known of them alone.
  EXPECT_TRUE(never_less(Dim(64), Dim::symbol("few", at_most(64))));
  EXPECT_FALSE(never_less(n, Dim::symbol("few", at_most(64))));
  const Dim some = Dim::symbol("some", at_least(2));
  EXPECT_TRUE(never_less(n + some, n + 2));
  EXPECT_FALSE(never_less(n + some, n + 3));
  EXPECT_FALSE(never_less(n + 2, n + some));
  EXPECT_TRUE(never_less(n, n - some + 2));
  EXPECT_TRUE(never_less(n + some / 2, n + 1));
  // What leaves 64 bits proves nothing.
  const Dim vast = Dim(INT64_MAX);
  EXPECT_FALSE(never_less(n * vast + n * vast + n + n + n, n + k));
  EXPECT_FALSE(never_less(k + vast + 1, (n + vast) + (k + vast)));
}

TEST(Dim, ParsesWhatAHandWrites) {
  const std::vector<Dim> known = {n, k};
  EXPECT_EQ(Dim::parse("n * 128", known), n * 128);
  EXPECT_EQ(Dim::parse("n * ceil_div(k, 128) + 1", known), n * ceil_div(k, 128) + 1);
  EXPECT_EQ(Dim::parse("n + k * 2 - 3", known), n + k * 2 - 3);
  EXPECT_EQ(Dim::parse("n - k - 1", known), n - k - 1);
  EXPECT_EQ(Dim::parse("n / 3 * 2 % 5", known), n / 3 * 2 % 5);
  EXPECT_EQ(Dim::parse("n // 3", known), n / 3);
  EXPECT_EQ(Dim::parse("(n + k) * 2", known), (n + k) * 2);
  EXPECT_EQ(Dim::parse("ceil(n / 16)", known), ceil_div(n, 16));
  EXPECT_EQ(Dim::parse("ceil(n * 3 // (k + 1)) * 2", known), ceil_div(n * 3, k + 1) * 2);
  EXPECT_EQ(Dim::parse("ceil(5 / 2)", known), Dim(3));
  EXPECT_EQ(Dim::parse("ceil((n + k) / 7)", known), ceil_div(n + k, 7));
  EXPECT_EQ(Dim::parse("((n))", known), n);
  std::string chain = "n";
  for (int i = 0; i < 100'000; ++i) chain += " + k";
  EXPECT_THROW((void)Dim::parse(chain, known), Error);
  EXPECT_THROW((void)Dim::parse(std::string(100'000, '('), known), Error);
}

TEST(Dim, ParseErrorsNameTheColumn) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "expected a dimension at column 1"},
      {"(n + )", "expected a dimension at column 6"},
      {"(n ? 2)", "expected an operator or \")\" at column 4"},
      {"n + ", "expected a dimension at column 5"},
      {"(n + 2", "expected an operator or \")\" at column 7"},
      {"n n", "unexpected text at column 3"},
      {"m", "unknown dimension \"m\""},
      {"sin(n, 2)", "unknown function \"sin\""},
      {"ceil(n)", "expected a division in ceil(), as in ceil(h / 16), at column 7"},
      {"ceil(n / 2 * 3)", "expected a division in ceil()"},
      {"ceil(n / 2 + 3)", "expected \")\" at column 12"},
      {"ceil(n / 0)", "a dimension is divided by zero: n by 0"},
      {"-", "expected a number at column 1"},
      {"99999999999999999999", "an integer of more than 64 bits"},
  };
  for (const auto& [text, message] : cases) {
    try {
      (void)Dim::parse(text, {n});
      ADD_FAILURE() << "accepted: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_NE(error.message().find(message), std::string::npos) << error.message();
    }
  }
}

}  // namespace
}  // namespace tilewright
