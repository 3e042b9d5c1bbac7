#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "library/accuracy.h"
#include "tilewright/dtype.h"

// manifest.json of a folder of golden data: what its files hold (docs/golden.md).
namespace tilewright::checks {

struct GoldenInput {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  // What it holds in words (library/stated_input.h), and the seed of the words; empty: the file
  // alone says it.
  std::string stated = {};
  std::uint64_t seed = 0;
  std::int64_t poisoned = 0;  // elements that nobody may read
  std::string hash = {};      // of the bytes; empty: nobody has noted it
};

struct GoldenOutput {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  library::Errors allowed;
};

struct GoldenCase {
  std::string name;  // of its files: NAME.inputs.safetensors and so on
  std::vector<std::string> settings;
  std::vector<GoldenInput> inputs;
  std::vector<GoldenOutput> outputs;
  std::vector<std::string> weaknesses = {};  // that its author knows of

  std::string inputs_file() const { return name + ".inputs.safetensors"; }
  std::string expected_file() const { return name + ".expected.safetensors"; }
  std::string outputs_file() const { return name + ".outputs.safetensors"; }
};

struct GoldenManifest {
  std::string kernel;  // of the library, or kGoldenKernel in the same folder
  std::vector<GoldenCase> cases;
};

inline constexpr const char* kGoldenManifest = "manifest.json";
inline constexpr const char* kGoldenKernel = "kernel.tw";

std::string manifest_text(const GoldenManifest& manifest);
// Raises a usage error that names the file, the entry and the fix.
GoldenManifest read_manifest(const std::string& path);
// The same, of the text of `file`.
GoldenManifest parse_manifest(const std::string& text, const std::string& file);

}  // namespace tilewright::checks
