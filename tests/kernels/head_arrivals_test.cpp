#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/attention_backward_heads.h"
#include "tilewright/compile.h"
#include "tilewright/hopper.h"
#include "tilewright/host_tensor.h"

// In which order heads arrive for gradients over ranks.
namespace tilewright::kernels {
namespace {

struct Numbers {
  std::vector<std::int64_t> of_keys, of_queries;  // by head
};

// As the ranks that send have them. Each head arrives once, with its keys or behind them.
Numbers numbers_sent(const Attention& own, int parts) {
  const int group = own.heads / own.kv_heads;
  const HeadArrivals arrivals(own, Dim(parts));
  Numbers sent{std::vector<std::int64_t>(static_cast<std::size_t>(own.kv_heads), -1),
               std::vector<std::int64_t>(static_cast<std::size_t>(own.heads), -1)};
  for (int number = 0; number < arrivals.count(); ++number) {
    const HeadArrivals::Arrival now = arrivals.arrival(number);
    const auto kv_head = static_cast<std::size_t>(now.kv_head.constant());
    if (now.keys.constant() == 1) {
      EXPECT_EQ(sent.of_keys.at(kv_head), -1) << "keys of head " << kv_head;
      sent.of_keys.at(kv_head) = number;
    }
    for (std::int64_t i = 0; i < now.members.constant(); ++i) {
      const std::int64_t member = now.first_member.constant() + i;
      EXPECT_LT(member, group);
      const std::size_t head =
          kv_head * static_cast<std::size_t>(group) + static_cast<std::size_t>(member);
      EXPECT_EQ(sent.of_queries.at(head), -1) << "head " << head;
      EXPECT_NE(sent.of_keys.at(kv_head), -1) << "head " << head << " before its keys";
      sent.of_queries.at(head) = number;
    }
  }
  return sent;
}

TEST(HeadArrivals, EachHeadArrivesOnceAndBehindItsKeys) {
  for (const int group : {1, 2, 3, 4, 5, 6, 16}) {
    for (int kv_heads = 1; kv_heads <= 4; ++kv_heads) {
      Attention own;
      own.heads = group * kv_heads;
      own.kv_heads = kv_heads;
      // What the kernel that waits takes for the numbers.
      Kernel kernel("numbers");
      const Dim parts = kernel.dim("parts");
      kernel.in("of_parts", i32, {parts});
      const Tensor keys = kernel.inout("keys", i32, {kv_heads});
      const Tensor queries = kernel.inout("queries", i32, {own.heads});
      const HeadArrivals arrivals(own, parts);
      kernel.ctas(1);
      kernel.roles({role("ask", warps(1), registers(40), [&] {
        for (Index head : range(kv_heads)) atomic_add(keys(head), arrivals.of_keys(head));
        for (Index head : range(own.heads)) atomic_add(queries(head), arrivals.of_queries(head));
      })});
      const Executable executable = compile(kernel, "sim:sm_90a");
      for (int count = 1; count <= group; ++count) {
        SCOPED_TRACE(testing::Message() << group << " heads share each of " << kv_heads
                                        << " heads of keys, in " << count << " parts");
        const Numbers sent = numbers_sent(own, count);
        HostTensor of_parts = HostTensor::zeros(i32, {count});
        HostTensor of_keys = HostTensor::zeros(i32, {kv_heads});
        HostTensor of_queries = HostTensor::zeros(i32, {own.heads});
        executable.run({ref(of_parts), ref(of_keys), ref(of_queries)});
        for (int head = 0; head < kv_heads; ++head) {
          EXPECT_EQ(of_keys.flat(head), sent.of_keys[static_cast<std::size_t>(head)]) << head;
        }
        for (int head = 0; head < own.heads; ++head) {
          EXPECT_EQ(of_queries.flat(head), sent.of_queries[static_cast<std::size_t>(head)]) << head;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tilewright::kernels
