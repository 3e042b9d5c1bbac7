#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz_files/mutator.h"
#include "fuzz_files/readers.h"

// Changes the files of a corpus and reads them:
//
//   fuzz_files READER FOLDER [--count N] [--seconds S] [--seed N] [--last FILE]
//   fuzz_files READER FILE                # one input again
//
// The input that is being read stands in the file --last, so that one which ends the process, by a
// sanitizer or by a time limit of ten seconds, is not lost.
namespace tilewright::fuzz_files {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr unsigned kPatience = 10;  // seconds, of an input

struct Options {
  std::string reader, place, last = "fuzz_files.last";
  std::uint64_t count = 2000, seed = 1;
  double seconds = 1e9;
};

template <typename Number>
bool take(const char* text, Number& number) {
  const char* const end = text + std::strlen(text);
  return std::from_chars(text, end, number) == std::from_chars_result{end, {}};
}

bool parse(int count, char** words, Options& options) {
  if (count < 3 || count % 2 == 0) return false;
  options.reader = words[1];
  options.place = words[2];
  for (int i = 3; i + 1 < count; i += 2) {
    const std::string_view word = words[i];
    const bool fits = word == "--count"     ? take(words[i + 1], options.count)
                      : word == "--seed"    ? take(words[i + 1], options.seed)
                      : word == "--seconds" ? take(words[i + 1], options.seconds)
                                            : word == "--last";
    if (!fits) return false;
    if (word == "--last") options.last = words[i + 1];
    if (word == "--seconds") options.count = UINT64_MAX;
  }
  return true;
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// In the order of their names, so that a seed means the same everywhere.
std::vector<std::string> corpus(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& file : fs::directory_iterator(folder)) files.push_back(file.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> texts;
  for (const fs::path& file : files) texts.push_back(contents(file));
  return texts;
}

// Memory of a file, which stays when the process is killed.
class LastInput {
 public:
  explicit LastInput(const std::string& path)
      : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {}
  ~LastInput() { ::close(file_); }
  LastInput(const LastInput&) = delete;
  void set(const std::string& bytes) const {
    const bool written =
        ::ftruncate(file_, 0) == 0 && ::pwrite(file_, bytes.data(), bytes.size(), 0) >= 0;
    if (!written) fmt::print(stderr, "the last input is not kept\n");
  }

 private:
  int file_;
};

int report(const Reader& reader, const std::string& problem, const std::string& where) {
  fmt::print("{}: {}\n  again: fuzz_files {} {}\n", reader.name, problem, reader.name, where);
  return 1;
}

int run(const Options& options) {
  const auto all = readers();
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const Reader& reader) { return reader.name == options.reader; });
  if (found == all.end()) {
    fmt::print(stderr, "there is no reader {}\n", options.reader);
    return 2;
  }
  const Reader& reader = *found;
  if (!fs::is_directory(options.place)) {
    const std::string problem = finding(reader, contents(options.place));
    return problem.empty() ? 0 : report(reader, problem, options.place);
  }
  const std::vector<std::string> texts = corpus(options.place);
  std::uint64_t taken = 0;
  // Otherwise what follows reads nothing but errors.
  for (const std::string& text : texts) {
    try {
      reader.read(text);
      ++taken;
    } catch (const std::exception& error) {
      fmt::print(stderr, "a file of the corpus is refused: {}\n", error.what());
    }
  }
  if (taken != texts.size() || texts.empty()) return 1;
  Mutator mutator(texts, reader.words, options.seed);
  const LastInput last(options.last);
  const auto end = Clock::now() + std::chrono::duration<double>(options.seconds);
  std::uint64_t inputs = 0;
  for (; inputs < options.count && Clock::now() < end; ++inputs) {
    const std::string text = mutator.next();
    last.set(text);
    ::alarm(kPatience);
    const std::string problem = finding(reader, text);
    if (!problem.empty()) return report(reader, problem, options.last);
  }
  ::alarm(0);
  fmt::print("{}: {} inputs out of {} files, no finding\n", reader.name, inputs, texts.size());
  return 0;
}

}  // namespace
}  // namespace tilewright::fuzz_files

#ifdef TILEWRIGHT_LIBFUZZER

namespace {

const tilewright::fuzz_files::Reader& chosen() {
  const char* const name = std::getenv("TILEWRIGHT_FUZZ_READER");
  for (const auto& reader : tilewright::fuzz_files::readers()) {
    if (name != nullptr && reader.name == name) return reader;
  }
  fmt::print(stderr, "TILEWRIGHT_FUZZ_READER names no reader\n");
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  static const auto& reader = chosen();
  const std::string problem = tilewright::fuzz_files::finding(
      reader, std::string(reinterpret_cast<const char*>(bytes), size));
  if (problem.empty()) return 0;
  fmt::print(stderr, "{}\n", problem);
  std::abort();
}

#else

int main(int count, char** words) {
  tilewright::fuzz_files::Options options;
  if (!tilewright::fuzz_files::parse(count, words, options)) {
    fmt::print(
        stderr,
        "fuzz_files READER FOLDER|FILE [--count N] [--seconds S] [--seed N] [--last FILE]\n");
    return 2;
  }
  return tilewright::fuzz_files::run(options);
}

#endif
