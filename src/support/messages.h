#pragma once

#include <functional>
#include <string>

namespace tilewright {

enum class Message { information, warning };

// Called by one thread at a time, in any of them. It calls nothing of the library.
using MessageSink = std::function<void(Message, const std::string&)>;

// Where what the library has to say goes from now on. An empty one: warnings to standard error, and
// information nowhere, as in the beginning. No other sink is called any more when it returns.
void send_messages_to(MessageSink sink);

// `text` ends without a newline.
void say(Message kind, const std::string& text);

}  // namespace tilewright
