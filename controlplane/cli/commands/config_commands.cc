// SPDX-License-Identifier: Apache-2.0
// config get-contexts, use-context, set-context, delete-context.
#include <iostream>

#include "controlplane/cli/documents/contexts.h"
#include "controlplane/cli/program.h"
#include "controlplane/cli/views/table.h"

namespace rocegw::cli {
namespace {

struct ContextQuery {
  std::string name;
  Endpoint place;
};

int GetContexts(const Program& program) {
  const std::string file = ContextsFile();
  Contexts contexts;
  if (auto result = ReadContexts(file, contexts); !result.ok()) return Fail(result);
  if (program.options.format == "name") {
    for (const auto& [name, place] : contexts.places) std::cout << name << "\n";
    return kOk;
  }
  if (contexts.places.empty()) {
    std::cerr << "no contexts in " << file << "; make one: rocegwctl config set-context\n";
    return kOk;
  }
  Table table;
  table.AddColumn("", Column::kLeft);
  table.AddColumn("NAME", Column::kLeft);
  table.AddColumn("WHERE", Column::kLeft);
  table.AddColumn("CERTIFICATE", Column::kCut);
  for (const auto& [name, place] : contexts.places) {
    table.AddRow({name == contexts.current ? "*" : "", name, place.Text(),
                  place.certificate_file.empty() ? "-" : place.certificate_file});
  }
  std::cout << table.Text(program.line_limit(), Program::colour());
  return kOk;
}

int UseContext(const ContextQuery& query) {
  const std::string file = ContextsFile();
  Contexts contexts;
  if (auto result = ReadContexts(file, contexts); !result.ok()) return Fail(result);
  if (!contexts.places.contains(query.name)) {
    return Fail({kNotFound, file + " has no context '" + query.name + "'", {}});
  }
  contexts.current = query.name;
  if (auto result = WriteContexts(file, contexts); !result.ok()) return Fail(result);
  std::cout << "context " << query.name << "\n";
  return kOk;
}

int SetContext(const ContextQuery& query) {
  const std::string file = ContextsFile();
  Contexts contexts;
  if (auto result = ReadContexts(file, contexts); !result.ok()) return Fail(result);
  Endpoint& place = contexts.places[query.name];
  for (const auto& [given, kept] :
       {std::pair(&query.place.ca_file, &place.ca_file),
        std::pair(&query.place.certificate_file, &place.certificate_file),
        std::pair(&query.place.key_file, &place.key_file),
        std::pair(&query.place.server_name, &place.server_name)}) {
    if (!given->empty()) *kept = *given;
  }
  if (!query.place.address.empty()) {
    Endpoint read;
    if (!ReadAddress(query.place.address, read)) {
      return FailUsage("--address: '" + query.place.address +
                       "' is neither HOST:PORT nor unix:PATH");
    }
    place.address = read.address;
    place.socket = read.socket;
  }
  if (place.address.empty() && place.socket.empty()) {
    return FailUsage("a new context needs an --address");
  }
  if (place.socket.empty() &&
      (place.ca_file.empty() || place.certificate_file.empty() || place.key_file.empty())) {
    return FailUsage(
        "an address needs --certificate, --key and --ca (rocegw-controller user-certificate "
        "NAME makes them)");
  }
  if (contexts.current.empty()) contexts.current = query.name;
  if (auto result = WriteContexts(file, contexts); !result.ok()) return Fail(result);
  std::cout << "context " << query.name << " written to " << file << "\n";
  return kOk;
}

int DeleteContext(const ContextQuery& query) {
  const std::string file = ContextsFile();
  Contexts contexts;
  if (auto result = ReadContexts(file, contexts); !result.ok()) return Fail(result);
  if (contexts.places.erase(query.name) == 0) {
    return Fail({kNotFound, file + " has no context '" + query.name + "'", {}});
  }
  if (contexts.current == query.name) contexts.current.clear();
  if (auto result = WriteContexts(file, contexts); !result.ok()) return Fail(result);
  std::cout << "context " << query.name << " deleted\n";
  return kOk;
}

}  // namespace

void AddConfigCommands(CLI::App& app, Program& program) {
  const auto query = std::make_shared<ContextQuery>();
  CLI::App* const config =
      program.Add(app, "config", "controllers by name, kept in a file of yours",
                  "  rocegw-controller user-certificate alice      (on the controller's host)\n"
                  "  rocegwctl config set-context prod --address ctl.example.org:7471 --ca ca.crt\n"
                  "      --certificate alice.crt --key alice.key\n"
                  "  rocegwctl config use-context prod\n"
                  "  rocegwctl --context prod get gateways\n"
                  "The file: ROCEGW_CONFIG, else ~/.config/rocegw/config.yaml.",
                  nullptr);
  program.Add(*config, "get-contexts", "all contexts; * marks the one in use", "",
              [&program] { return GetContexts(program); });
  const auto add_name = [&](CLI::App* command) {
    command->add_option("NAME", query->name, "of the context")->required();
  };
  add_name(program.Add(*config, "use-context", "the one to use without --context", "",
                       [query] { return UseContext(*query); }));
  CLI::App* const set = program.Add(*config, "set-context", "make a context, or change parts of it",
                                    "", [query] { return SetContext(*query); });
  add_name(set);
  set->add_option("--address", query->place.address, "HOST:PORT, or unix:PATH")->type_name("WHERE");
  set->add_option("--ca", query->place.ca_file, "certificates of the fleet's authority")
      ->type_name("FILE");
  set->add_option("--certificate", query->place.certificate_file, "who you are")->type_name("FILE");
  set->add_option("--key", query->place.key_file, "the certificate's key")->type_name("FILE");
  set->add_option("--server-name", query->place.server_name,
                  "name in the certificate, if not the address's")
      ->type_name("NAME");
  add_name(program.Add(*config, "delete-context", "forget a context", "",
                       [query] { return DeleteContext(*query); }));
}

}  // namespace rocegw::cli
