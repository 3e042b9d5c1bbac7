#pragma once

#include <memory>
#include <string>

#include "command.h"

namespace CLI {
class App;
class Option;
class ParseError;
}  // namespace CLI

namespace tilewright::tools {

// What may stand in place of a kernel's name.
inline constexpr const char* kKernelFile =
    "; or a file that ends in .tw, as TILEWRIGHT_DUMP makes them of your kernels";

// The commands and their options, which fill in one request.
class CommandLine {
 public:
  CommandLine();
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  // The exit status.
  int execute(int count, char** words);

 private:
  void add_simulate();
  void add_tune();
  void add_build();
  void add_fuzz();
  void add_stress();
  void add_check_gradients();
  void add_golden();

  void check_command(const std::string& word);
  [[noreturn]] void refuse(const CLI::ParseError& error) const;

  // What several commands have.
  CLI::App* add(const char* name, const char* description, int (*command)(const Request&));
  // Whether a command asks for the name of a target.
  enum class Named { always, or_of_machine };
  void kernel(CLI::App* app, const std::string& targets, Named named,
              const char* files = kKernelFile);
  void schedule(CLI::App* app);
  void settings(CLI::App* app);
  CLI::Option* inputs(CLI::App* app);
  void seed(CLI::App* app, const char* description);
  void timeout(CLI::App* app);
  CLI::Option* checked(CLI::App* app);
  void json(CLI::App* app);

  std::unique_ptr<CLI::App> app_;
  Request request_;
  int (*command_)(const Request&) = nullptr;
};

// What is wrong with a word, or "".
std::string problem_of_target(const std::string& word);

}  // namespace tilewright::tools
