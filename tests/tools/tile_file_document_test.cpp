#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/temporary_folder.h"
#include "ir/operation_record.h"
#include "support/file.h"
#include "tools/run_command.h"

// docs/tile-files.md, which says what stands in a file .tw.
namespace tilewright::test {
namespace {

using testing::HasSubstr;

constexpr ir::Op kOperations[] = {
#define TW_OPERATION(name, ...) ir::Op::name,
#include "ir/operations.def"
};

std::string document() {
  return read_text(std::string(TILEWRIGHT_SOURCE_DIR) + "/docs/tile-files.md");
}

TEST(TileFileDocument, ItsFileRuns) {
  const std::string text = document(), fence = "\n```\n";
  const std::size_t begin = text.find(fence) + fence.size();
  const TemporaryFolder folder;
  const std::string file = folder / "scaled.tw";
  write_text(file, text.substr(begin, text.find(fence, begin) + 1 - begin));
  for (const char* target : {"cpu", "interpreter", "sim:sm_90a"}) {
    const Answer answer = tilewright("run " + file + " --target " + target +
                                     " --set rows=100 --set columns=200 --set alpha=0.5 --check");
    EXPECT_EQ(answer.status, 0) << answer.output;
    EXPECT_THAT(answer.output, HasSubstr("ok"));
  }
}

TEST(TileFileDocument, NamesEveryOperationOfTheTileForm) {
  const std::string text = document();
  for (const ir::Op op : kOperations) {
    const ir::OpInfo& record = ir::info(op);
    if (!record.in(ir::Form::tile)) continue;
    EXPECT_THAT(text, HasSubstr("`" + std::string(record.name) + "`"));
  }
}

}  // namespace
}  // namespace tilewright::test
