#pragma once

namespace tilewright::ahead {

extern const char* const kSupport;  // support.c.in
extern const char* const kHost;     // host.c.in
extern const char* const kCalls;    // calls.c.in

}  // namespace tilewright::ahead
