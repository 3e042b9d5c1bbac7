#pragma once

#include <string>

#include "common/processes.h"
#include "tilewright/program.h"

namespace tilewright::test {

// Says "runs ", then what ends the runs, and behind " again: " what a further one ends with.
inline void run_until_a_rank_is_lost(ProgramExecutable& executable, int at_once,
                                     const Voice& voice) {
  voice.say("runs ");
  voice.say_error_of([&] {
    for (;;) executable.run(at_once);
  });
  try {
    executable.run(1);
  } catch (const Error& error) {
    voice.say(std::string(" again: ") + error.what());
  }
}

}  // namespace tilewright::test
