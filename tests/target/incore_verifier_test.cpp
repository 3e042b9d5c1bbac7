#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "common/error_text.h"
#include "incore_products.h"
#include "ir/builder.h"
#include "target/core.h"
#include "target/target.h"
#include "target/verify.h"
#include "tilewright/incore.h"

// Forms for cores with explicit memories that somebody has changed: each rule of the verifier,
// broken by hand.
namespace tilewright::simulator {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using testing::HasSubstr;

// A text that somebody has changed is refused, not executed.
TEST(IncoreVerifier, ChangedFormsAreRefused) {
  const ir::Kernel machine = example_product("incore", "cube");
  const auto is_refused =
      [&](const std::function<bool(ir::Kernel & kernel, Operation & o)>& change) {
        ir::Kernel changed = machine;
        bool done = false;
        ir::for_each(changed.body, [&](Operation& o) { done = done || change(changed, o); });
        EXPECT_TRUE(done);
        try {
          target::verify(changed, ErrorKind::usage);
        } catch (const Error&) {
          return true;
        }
        return false;
      };
  EXPECT_FALSE(is_refused([](ir::Kernel&, Operation& o) { return o.op == Op::window; }));
  // A memory of a row or a column less than its windows have, of fewer stages.
  for (const std::size_t axis : {1U, 2U}) {
    EXPECT_TRUE(is_refused([&](ir::Kernel& kernel, Operation& o) {
      if (o.op != Op::memory) return false;
      --kernel.types[o.results[0]].shape[axis];
      return true;
    }));
  }
  // Other parts of a tensor than their windows.
  for (const Op op : {Op::core_load, Op::core_store}) {
    for (const std::size_t axis : {0U, 1U}) {
      EXPECT_TRUE(is_refused([&](ir::Kernel&, Operation& o) {
        if (o.op != op) return false;
        std::vector<std::int64_t> sizes = o.attributes.integers(Key::sizes);
        --sizes[axis];
        o.attributes.set(Key::sizes, sizes);
        return true;
      }));
    }
  }
}

// One vector core's maximum of rows, and a barrier.
ir::Kernel row_maximum() {
  Kernel kernel("maximum");
  kernel.target("incore");
  const Tensor X = kernel.in("X", f32, {16, 64}), Y = kernel.out("Y", f32, {16});
  kernel.ctas(1);
  CoreMemory x(kernel, "Vec", "x", f32, 16, 64), most(kernel, "Vec", "most", f32, 16, 1);
  CoreEvent loaded(kernel, "VMTE2", "V"), made(kernel, "V", "VMTE3");
  kernel.roles({sequencer("vector", [&](const Index& instance) {
    when(instance == 0, [&] {
      move(x, X(all, all));
      loaded.set();
      loaded.wait();
      vector(VectorFunction::negate, x, {x});
      unit_barrier("V");
      reduce(Reduction::max, most, x, 1);
      made.set();
      made.wait();
      move(Y(all), most);
    });
  })});
  return machine_form(kernel);
}

TEST(IncoreVerifier, EveryRuleSaysWhatIsWrong) {
  const ir::Kernel product = example_product("incore", "cube");
  const ir::Kernel of_partitions = machine_form(partitions_product());
  const ir::Kernel maximum = row_maximum();
  using Change = std::function<bool(ir::Kernel & kernel, Operation & o)>;
  const auto of = [](Op op, std::function<void(ir::Kernel&, Operation&)> change) -> Change {
    return [op, change = std::move(change)](ir::Kernel& kernel, Operation& o) {
      if (o.op != op) return false;
      change(kernel, o);
      return true;
    };
  };
  const auto sets = [&](Op op, Key key, auto value) {
    return of(op, [key, value](ir::Kernel&, Operation& o) { o.attributes.set(key, value); });
  };
  const auto text = [](const char* name) { return std::string(name); };
  const auto shape = [&](std::size_t axis, std::int64_t size) {
    return of(Op::memory, [=](ir::Kernel& kernel, Operation& o) {
      kernel.types[o.results[0]].shape[axis] = size;
    });
  };
  // The first that a role sets or waits for.
  const auto event_of = [&](std::int64_t number) {
    return of(Op::role, [number](ir::Kernel& kernel, Operation& role) {
      ir::Block made;
      const ir::ValueId id = ir::Builder(kernel, made, role.where).constant(number, i64);
      bool done = false;
      ir::for_each(role.blocks[0], [&](Operation& o) {
        if (done || (o.op != Op::event_set && o.op != Op::event_wait)) return;
        o.operands[0] = id;
        done = true;
      });
      role.blocks[0].body.insert(role.blocks[0].body.begin(), std::move(made.body[0]));
    });
  };
  struct Case {
    const ir::Kernel& kernel;
    Change change;
    const char* says;
  };
  const std::vector<Case> cases = {
      {product, [](ir::Kernel& kernel, Operation&) { return ++kernel.threads > 0; },
       "sequencers in clusters of 1, expected 3 alone"},
      {product, sets(Op::role, Key::name, text("mte")), "incore has no sequencer mte"},
      {product, sets(Op::role, Key::warps, std::int64_t{2}), "2 of cube, expected 1"},
      {product, sets(Op::memory, Key::space, text("L1")), "there is no memory L1"},
      {product, sets(Op::memory, Key::space, text("Vec")),
       "Vec is a memory of vector, and not of cube"},
      {product, sets(Op::memory, Key::offset, std::int64_t{16}),
       "begins at byte 16 of Mat, expected a multiple of 32"},
      {product, sets(Op::memory, Key::offset, std::int64_t{-32}), "begins at byte -32 of Mat"},
      {product, sets(Op::memory, Key::offset, std::int64_t{1} << 19), "of Mat, which has 524288"},
      {of_partitions, shape(1, 129), "SBUF has 128 partitions, and each holds a row"},
      {product, sets(Op::core_load, Key::unit, text("MTE1")),
       "nothing moves from GM to Mat by MTE1"},
      {product, sets(Op::core_move, Key::unit, text("FIX")),
       "nothing moves from Mat to Left by FIX"},
      {product, sets(Op::event_set, Key::to, text("V")), "there is no event from"},
      {product, event_of(8), "event 8 from MTE1 to MTE2, expected 0 to 7"},
      {product,
       of(Op::event_wait,
          [](ir::Kernel&, Operation& o) {
            o.attributes.set(Key::from, std::string("VMTE2"));
            o.attributes.set(Key::to, std::string("V"));
          }),
       "V does it, which the role \"cube\" has not"},
      {maximum, sets(Op::unit_barrier, Key::unit, text("M")),
       "M does it, which the role \"vector\" has not"},
      {maximum, sets(Op::core_vector, Key::function, Op::erf), "V has no erf"},
      {maximum, sets(Op::core_vector, Key::function, Op::add), "add of 1 operands"},
      {maximum, sets(Op::core_reduce, Key::axis, std::int64_t{0}),
       "the result is {16, 1}, expected {1, 64}"},
      {maximum, sets(Op::core_reduce, Key::axis, std::int64_t{2}), "axis 2, expected 0 or 1"},
      {maximum, sets(Op::core_reduce, Key::unit, text("VMTE2")), "no unit computes Vec -> Vec"},
      {maximum, sets(Op::core_load, Key::sizes, std::vector<std::int64_t>{0, 0}),
       "0 axes of X, expected 1 to 3"},
      {maximum, sets(Op::core_load, Key::sizes, std::vector<std::int64_t>{-1, 64}), "a size of -1"},
      {maximum,
       sets(Op::core_load, Key::sizes, std::vector<std::int64_t>{std::int64_t{1} << 21, 64}),
       "a size of 2097152"},
  };
  for (const Case& each : cases) {
    ir::Kernel changed = each.kernel;
    bool done = false;
    ir::for_each(changed.body, [&](Operation& o) { done = done || each.change(changed, o); });
    EXPECT_TRUE(done) << each.says;
    try {
      target::verify(changed, ErrorKind::usage);
      ADD_FAILURE() << "nothing was wrong: " << each.says;
    } catch (const Error& error) {
      EXPECT_THAT(test::without_source_lines(error.what()), HasSubstr(each.says));
    }
  }
}

}  // namespace
}  // namespace tilewright::simulator
