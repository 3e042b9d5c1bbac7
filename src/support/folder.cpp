#include "support/folder.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "support/diagnostic.h"

namespace tilewright {

void make_folder(const std::string& folder) {
  std::error_code error, ignored;
  std::filesystem::create_directories(folder, error);
  if (std::filesystem::is_directory(folder, ignored)) return;
  Diagnostic({}, fmt::format("{}: cannot be made a folder: {}", folder,
                             error ? error.message() : "a file is there"))
      .fix("name a folder that you may write to")
      .raise();
}

}  // namespace tilewright
