// SPDX-License-Identifier: Apache-2.0
// command_line.hpp: one command's arguments and options: their help and their parse.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/cli/option_values.hpp"

namespace qrtool {

using Args = std::vector<std::string>;
/// Takes the text of an option's value.
using Setter = std::function<void(const std::string&)>;

/// Declare with positional, flag, value and choice; then parse or help. The option list of the help
/// is made from what was declared.
class CommandLine {
 public:
  /// `about`: what the command does, and examples.
  CommandLine(std::string_view name, std::string_view positionals, std::string_view about);
  ~CommandLine();

  /// A file that must be given.
  void positional(const std::string& name, std::string& target, const std::string& help);

  void flag(const std::string& names, bool& target, const std::string& help);

  /// `set` gets the text of the value; the last one where an option is repeated.
  void value(const std::string& name, const std::string& placeholder, const std::string& help,
             const Setter& set);

  /// As value(); the name alone means `usual`.
  void optional_value(const std::string& name, const std::string& placeholder,
                      const std::string& usual, const std::string& help, const Setter& set);

  /// `set` gets a comma list; an option that is repeated adds to it.
  void list(const std::string& name, const std::string& placeholder, const std::string& help,
            const Setter& set);

  template <class T, std::size_t N>
  void choice(const std::string& name, T& target, const std::string& help,
              const std::pair<std::string_view, T> (&choices)[N]) {
    std::string names;
    for (const auto& entry : choices)
      names += (names.empty() ? "" : ", ") + std::string(entry.first);
    value(name, "WORD", help + ": " + names, [name, &target, &choices](const std::string& text) {
      target = choose(name, text, choices);
    });
  }

  /// False where the line asks for help: then nothing else is looked at. Errors: UsageError.
  bool parse(Args args);

  std::string help() const;

 private:
  struct Parser;

  void refuse_extra(Args extra) const;
  UsageError unknown_option(const std::string& arg) const;
  UsageError in_our_words(const std::string& message) const;
  UsageError usage_error(const std::string& what) const;

  std::string name_, positionals_, about_;
  std::unique_ptr<Parser> parser_;
  std::vector<std::pair<std::string, const std::string*>> required_;
};

}  // namespace qrtool
