// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/commands/completion.h"

#include <algorithm>
#include <cctype>
#include <iostream>

#include "controlplane/cli/documents/kinds.h"
#include "controlplane/cli/documents/object_input.h"

namespace rocegw::cli {
namespace {

constexpr std::chrono::seconds kPatience(2);

constexpr char kBash[] = R"(# rocegwctl: source this, or put it into /etc/bash_completion.d.
_rocegwctl() {
  local IFS=$'\n'
  COMPREPLY=($("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=.] ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -o default -F _rocegwctl rocegwctl
)";

constexpr char kZsh[] = R"(#compdef rocegwctl
# rocegwctl: source this after compinit, or put it as _rocegwctl into a directory of $fpath.
_rocegwctl() {
  local -a found
  found=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  found=(${found:#})
  if (( ${#found} )); then
    if [[ ${#found} -eq 1 && ${found[1]} == *[=.] ]]; then compadd -S '' -- $found
    else compadd -- $found; fi
  else
    _files
  fi
}
compdef _rocegwctl rocegwctl
)";

using Words = std::vector<std::string>;

// Command line up to the cursor.
struct Line {
  const CLI::App* command = nullptr;
  std::vector<const CLI::App*> parents;  // their options are valid as well
  Words positionals;
  const CLI::Option* pending = nullptr;  // option whose value is being typed
  std::string tenant;
};

const CLI::Option* FindOption(const Line& line, const std::string& name) {
  for (const CLI::App* app : line.parents) {
    if (const CLI::Option* option = app->get_option_no_throw(name)) return option;
  }
  return nullptr;
}

void TakeGlobal(const CLI::Option& option, const std::string& value, Program& program, Line& line) {
  Choice& choice = program.options.choice;
  if (option.check_lname("context")) choice.context = value;
  if (option.check_lname("controller")) choice.controller = value;
  if (option.check_lname("socket")) choice.gateway_socket = value;
  if (option.check_lname("local")) choice.local = true;
  if (option.check_lname("tenant")) line.tenant = value;
}

Line Understand(const CLI::App& app, Program& program, const Words& words) {
  Line line;
  line.command = &app;
  line.parents = {&app};
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.starts_with('-') && word.size() > 1) {
      const size_t equals = word.find('=');
      const CLI::Option* const option = FindOption(line, word.substr(0, equals));
      if (option == nullptr) continue;
      const bool wants_value = option->get_items_expected_max() > 0 && equals == std::string::npos;
      if (wants_value && i + 2 == words.size()) {
        line.pending = option;
      } else {
        TakeGlobal(*option,
                   equals != std::string::npos ? word.substr(equals + 1)
                                               : (wants_value ? words[i + 1] : ""),
                   program, line);
        if (wants_value) ++i;
      }
      continue;
    }
    const CLI::App* below = nullptr;
    if (line.positionals.empty()) {
      for (const CLI::App* sub :
           line.command->get_subcommands([](const CLI::App*) { return true; })) {
        if (sub->get_name() == word) below = sub;
      }
    }
    if (below != nullptr) {
      line.command = below;
      line.parents.push_back(below);
    } else {
      line.positionals.push_back(word);
    }
  }
  return line;
}

Words NamesOf(Program& program, const Kind& kind, const std::string& tenant) {
  program.options.timeout = kPatience;
  if (!program.OpenController().ok()) return {};
  ObjectList list;
  const bool in_tenant = kind.parent == "tenants";
  const std::string parent = tenant.empty() || !in_tenant ? "" : "tenants/" + ShortName(tenant);
  if (!program.objects().List(kind, parent, {}, list).ok()) return {};
  Words names;
  for (const MessagePtr& object : list.objects) {
    const std::string name = ShortName(TextOf(*object, "name"));
    names.push_back(tenant.empty() || !in_tenant ? name : name.substr(name.find('/') + 1));
  }
  return names;
}

Words ContextNames() {
  Contexts contexts;
  Words names;
  if (!ReadContexts(ContextsFile(), contexts).ok()) return {};
  for (const auto& [name, place] : contexts.places) names.push_back(name);
  return names;
}

Words KindNames(bool plural, bool writable_only) {
  Words names;
  for (const Kind& kind : Kinds()) {
    if (kind.writable || !writable_only) names.emplace_back(plural ? kind.plural : kind.singular);
  }
  return names;
}

Words FieldsOf(const Kind& kind) {
  Words fields;
  for (const std::string& path : AssignablePaths(kind)) {
    fields.push_back(path.ends_with('.') ? path : path + "=");
  }
  return fields;
}

Words ValuesOf(const Line& line, const CLI::Option& option, Program& program) {
  if (option.check_lname("output")) return {"table", "wide", "json", "yaml", "name"};
  if (option.check_lname("on-deadline")) return {"keep", "disconnect", "abort"};
  if (option.check_lname("context")) return ContextNames();
  if (option.check_lname("tenant")) return NamesOf(program, *FindKind("tenants"), {});
  if (line.command->get_name() == "plan" && option.check_lname("to"))
    return {"gateway", "rnic", "tcp"};
  if (option.check_lname("gateway") || option.check_lname("from") || option.check_lname("to"))
    return NamesOf(program, *FindKind("gateways"), {});
  return {};
}

Words PositionalsOf(const Line& line, Program& program) {
  const std::string& command = line.command->get_name();
  const size_t at = line.positionals.size();
  const auto contains = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, command) != names.end();
  };
  if (contains({"get", "describe", "watch", "update", "delete", "create"})) {
    const bool reads = contains({"get", "describe", "watch"});
    if (at == 0) {
      Words kinds = KindNames(reads, !reads);
      if (command == "get")
        kinds.insert(kinds.end(),
                     {"sessions", "qps", "connections", "channels", "mrs", "srqs", "counters"});
      return kinds;
    }
    const Kind* const kind = FindKind(line.positionals[0]);
    if (kind == nullptr || (command == "create" && at == 1)) return {};
    if (at >= 2 && contains({"create", "update"})) return FieldsOf(*kind);
    return NamesOf(program, *kind, line.tenant);
  }
  if (command == "test") return NamesOf(program, *FindKind("gateways"), {});
  if (command == "donor") return at == 0 ? NamesOf(program, *FindKind("donors"), {}) : Words();
  if (contains({"drain", "undrain", "revoke"}) && at == 1 && line.positionals[0] == "donor")
    return NamesOf(program, *FindKind("donors"), {});
  if (at != 0) return {};
  if (contains({"status", "drain", "undrain", "revoke", "adopt"})) {
    return NamesOf(program, *FindKind("gateways"), {});
  }
  if (contains({"wait", "cancel"})) return NamesOf(program, *FindKind("operations"), {});
  if (contains({"use-context", "set-context", "delete-context"})) return ContextNames();
  if (command == "completion") return {"bash", "zsh"};
  return {};
}

Words OptionsOf(const Line& line) {
  Words names;
  for (const CLI::App* app : line.parents) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

}  // namespace

std::vector<std::string> Completions(const CLI::App& app, Program& program, const Words& words) {
  if (words.empty()) return {};
  const Line line = Understand(app, program, words);
  Words all;
  if (line.pending != nullptr) {
    all = ValuesOf(line, *line.pending, program);
  } else if (words.back().starts_with('-')) {
    all = OptionsOf(line);
  } else {
    if (line.positionals.empty()) {
      for (const CLI::App* sub :
           line.command->get_subcommands([](const CLI::App*) { return true; })) {
        all.push_back(sub->get_name());
      }
    }
    if (all.empty()) all = PositionalsOf(line, program);
  }
  std::erase_if(all, [&](const std::string& word) { return !word.starts_with(words.back()); });
  std::ranges::sort(all);
  return all;
}

void AddCompletionCommand(CLI::App& app, Program& program) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* const completion =
      program.Add(app, "completion", "print a script for the shell's completion",
                  "  source <(rocegwctl completion bash)\n"
                  "  rocegwctl completion zsh > ~/.zfunc/_rocegwctl",
                  [shell] {
                    std::cout << (*shell == "bash" ? kBash : kZsh);
                    return static_cast<int>(kOk);
                  });
  completion->add_option("SHELL", *shell, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}).description(""));
}

}  // namespace rocegw::cli
