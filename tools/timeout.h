#pragma once

namespace tilewright::tools {

// Once the time is over, whatever the command is at, it ends with a message and the status of a
// result that falls short.
void end_after(double seconds);

}  // namespace tilewright::tools
