#include <cstdio>
#include <exception>
#include <new>

#include "command_line.h"
#include "support/file.h"
#include "tilewright/error.h"

namespace {

constexpr int kUsage = static_cast<int>(tilewright::ErrorKind::usage);
constexpr int kInternal = static_cast<int>(tilewright::ErrorKind::internal);

}  // namespace

// The whole command, for a library that has it (scripts/wheel). Its value is the exit status.
extern "C" __attribute__((visibility("default"))) int tilewright_command(int count, char** words);
int tilewright_command(int count, char** words) {
  try {
    tilewright::remove_temporaries_on_signals();
    tilewright::tools::CommandLine line;
    const int status = line.execute(count, words);
    // An earlier flush may have failed: nothing is left for this one then.
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  } catch (const tilewright::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "error: the tensors do not fit into memory\n  fix: set smaller sizes\n");
    return kUsage;
  } catch (const std::exception& error) {
    if (std::ferror(stdout) == 0) {
      std::fprintf(stderr, "internal error: %s\n", error.what());
      return kInternal;
    }
  }
  std::fprintf(stderr, "error: standard output cannot be written\n");
  return kUsage;
}

int main(int count, char** words) { return tilewright_command(count, words); }
