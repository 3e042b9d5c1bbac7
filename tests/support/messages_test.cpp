#include "support/messages.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tilewright {
namespace {

TEST(MessagesTest, AreSentWhereTheHostSays) {
  std::vector<std::string> got;
  send_messages_to([&](Message kind, const std::string& text) {
    got.push_back((kind == Message::warning ? "warning " : "information ") + text);
  });
  testing::internal::CaptureStderr();
  say(Message::information, "one");
  say(Message::warning, "two");
  send_messages_to({});
  say(Message::information, "three");
  say(Message::warning, "four");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "four\n");
  EXPECT_EQ(got, (std::vector<std::string>{"information one", "warning two"}));
}

}  // namespace
}  // namespace tilewright
