// Compiled by tests that expect an error: a record with one mistake for each CASE but 0.
#include "ir/operation_record.cpp"

namespace tilewright::ir {
namespace {
namespace records {

#if CASE == 0
constexpr OpInfo kRow =
    record("row", Family::word, "SM", "Ti*", "i", reads(global, async), by(lane), done(bulk),
           orders_as(weak), must(Key::bytes), may(Key::scope));
#elif CASE == 1
constexpr OpInfo kRow = record("row", Family::word, "SM", "Qi", "i");  // a kind of operands
#elif CASE == 2
constexpr OpInfo kRow = record("row", Family::word, "SQ", "Ti", "i");  // a form
#elif CASE == 3
constexpr OpInfo kRow = record("row", Family::word, "SM", "Ti", "i", reads(globl));
#elif CASE == 4
constexpr OpInfo kRow = record("row", Family::word, "SM", "Ti", "i", reads(global, asynch));
#elif CASE == 5
constexpr OpInfo kRow = record("row", Family::word, "SM", "Ti", "i", done(barrier));  // a memory
#elif CASE == 6
constexpr OpInfo kRow = record("row", Family::word, "SM", "Ti", "i", must(Key::byte));
#elif CASE == 7
constexpr OpInfo kRow = record("row", Family::words, "SM", "Ti", "i");
#endif
static_assert(kRow.in(Form::machine));

}  // namespace records
}  // namespace
}  // namespace tilewright::ir
