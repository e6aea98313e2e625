// SPDX-License-Identifier: Apache-2.0
// sysdump: all readable data in one archive for a bug report. Failures are listed in the archive.
// Keys, tokens and remote keys are in no answer of the servers.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <iostream>
#include <memory>

#include "controlplane/cli/client/state_client.h"
#include "controlplane/cli/commands/fleet_progress.h"
#include "controlplane/cli/documents/documents.h"
#include "controlplane/cli/printing.h"
#include "controlplane/cli/program.h"
#include "controlplane/cli/tar_gz.h"
#include "controlplane/cli/views/state_lists.h"
#include "gateway/process/build_info.h"
#include "rocegw/admin/v1/operations.pb.h"
#include "rocegw/types/v1/gateway.pb.h"

namespace rocegw::cli {
namespace {

constexpr int kAuditRecords = 1000;

struct DumpQuery {
  std::string file;
  std::vector<std::string> gateways;
  bool no_gateways = false;
};

class Dump {
 public:
  Dump(Program& program, std::string root)
      : program_(program), root_(std::move(root)), archive_(Program::Now()) {}

  void Add(const std::string& name, const std::string& text) {
    archive_.Add(root_ + "/" + name, text);
  }

  template <typename Message>
  void AddAnswer(const std::string& name, const CallResult& result, const Message& message) {
    line_.Show(name);
    if (result.ok()) {
      Add(name, JsonText(message));
      ++read_;
    } else {
      failures_ += name + ": " + result.text + "\n";
    }
  }

  // Adds the data of one gateway; empty: the connected one.
  void AddGateway(const std::string& name, const std::string& folder) {
    StateClient client(program_.rpc(), name);
    types::v1::GatewayStatus status;
    const CallResult result = client.GetStatus(status);
    AddAnswer(folder + "status.json", result, status);
    // A gateway that does not answer would cause five timeouts more.
    if (!result.ok()) return;
    for (const StateList& kind : StateLists()) {
      const std::unique_ptr<google::protobuf::Message> list = kind.make();
      const CallResult read = client.List(*list);
      AddAnswer(folder + std::string(kind.plural) + ".json", read, *list);
    }
    gateway::v1::GetCountersResponse counters;
    AddAnswer(folder + "counters.json", client.GetCounters(counters), counters);
    gateway::v1::DiagnoseResponse diagnosis;
    AddAnswer(folder + "doctor.json", client.Diagnose(diagnosis), diagnosis);
  }

  void AddFleet(const DumpQuery& query) {
    FleetProgress progress;
    AddAnswer("progress.json", GetProgress(program_.rpc(), 0, progress), progress);
    std::vector<std::string> gateways;
    for (const Kind& kind : Kinds()) {
      ObjectList list;
      const CallResult result = program_.objects().List(kind, {}, {}, list);
      const std::string name = std::string(kind.plural) + ".json";
      if (!result.ok()) {
        failures_ += name + ": " + result.text + "\n";
        continue;
      }
      Messages messages;
      for (const MessagePtr& object : list.objects) messages.push_back(object.get());
      Add(name, ObjectsJson(std::string(kind.plural), messages));
      ++read_;
      if (kind.object == types::v1::Gateway::descriptor()) Choose(query, list, gateways);
    }
    admin::v1::ListRecordsRequest request;
    request.set_page_size(kAuditRecords);
    admin::v1::ListRecordsResponse records;
    AddAnswer("audit.json",
              program_.rpc().Call("/rocegw.admin.v1.Audit/ListRecords", request, records), records);
    for (const std::string& gateway : gateways) {
      AddGateway(gateway, "gateways/" + ShortName(gateway) + "/");
    }
  }

  std::string Finish() {
    if (!failures_.empty()) Add("failed.txt", failures_);
    return archive_.Finish();
  }

  size_t read() const { return read_; }
  const std::string& failures() const { return failures_; }

 private:
  // Chooses the gateways to ask: the connected ones, or the named ones.
  static void Choose(const DumpQuery& query, const ObjectList& list,
                     std::vector<std::string>& gateways) {
    for (const MessagePtr& object : list.objects) {
      const auto& gateway = static_cast<const types::v1::Gateway&>(*object);
      const bool named = std::ranges::count(query.gateways, ShortName(gateway.name())) != 0;
      const bool wanted = query.gateways.empty() ? gateway.status().connected() : named;
      if (wanted && !query.no_gateways) gateways.push_back(gateway.name());
    }
  }

  Program& program_;
  std::string root_;
  TarGz archive_;
  Progress line_;
  size_t read_ = 0;
  std::string failures_;
};

CallResult WriteFile(const std::string& file, const std::string& bytes) {
  const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  size_t written = 0;
  bool good = fd >= 0;
  while (good && written < bytes.size()) {
    const ssize_t n = write(fd, bytes.data() + written, bytes.size() - written);
    good = n > 0;
    if (good) written += static_cast<size_t>(n);
  }
  const int error = errno;
  if (fd >= 0 && close(fd) != 0) good = false;
  return good ? CallResult() : CallResult{kFailed, file + ": " + std::strerror(error), {}};
}

int Sysdump(Program& program, const DumpQuery& query) {
  if (auto result = program.Open(); !result.ok()) return Fail(result);
  const auto now = static_cast<std::time_t>(Program::Now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &parts);
  const std::string root = "rocegw-sysdump-" + std::string(stamp);
  std::string bytes;
  std::string failures;
  size_t read = 0;
  {
    Dump dump(program, root);
    dump.Add("about.txt", "rocegwctl " + process::VersionText() + "\n" +
                              program.rpc().endpoint().what + " " +
                              program.rpc().endpoint().Text() + "\n" + TimeText(now) + "\n");
    if (program.is_gateway()) {
      dump.AddGateway("", "gateway/");
    } else {
      dump.AddFleet(query);
    }
    bytes = dump.Finish();
    failures = dump.failures();
    read = dump.read();
  }
  if (read == 0) return Fail({kFailed, "nothing could be read:\n" + failures, {}});
  const std::string file = query.file.empty() ? root + ".tar.gz" : query.file;
  if (file == "-") {
    std::cout << bytes;
  } else {
    if (auto result = WriteFile(file, bytes); !result.ok()) return Fail(result);
    std::cout << file << "\n";
  }
  if (failures.empty()) return kOk;
  return Fail(
      {kPartlyFailed,
       "could not be read (failed.txt tells the same):\n" + failures.substr(0, failures.size() - 1),
       {}});
}

}  // namespace

void AddSysdumpCommand(CLI::App& app, Program& program) {
  const auto query = std::make_shared<DumpQuery>();
  CLI::App* const dump =
      program.Add(app, "sysdump", "everything readable in one archive, for a bug report",
                  "  rocegwctl sysdump\n"
                  "  rocegwctl sysdump --gateway host-a --gateway host-b -f dump.tar.gz\n"
                  "  rocegwctl --local sysdump -f - | tar tz\n"
                  "Objects, progress, audit records, and what each connected gateway says of "
                  "itself. No keys, no\n"
                  "tokens. What could not be read is listed in failed.txt: exit status 8.",
                  [&program, query] { return Sysdump(program, *query); });
  dump->add_option("-f,--file", query->file, "default: rocegw-sysdump-TIME.tar.gz; -: stdout")
      ->type_name("FILE");
  dump->add_option("-g,--gateway", query->gateways, "ask this one; default: all that are connected")
      ->type_name("NAME");
  dump->add_flag("--no-gateways", query->no_gateways, "ask no gateway, only the controller");
}

}  // namespace rocegw::cli
