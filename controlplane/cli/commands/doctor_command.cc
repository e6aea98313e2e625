// SPDX-License-Identifier: Apache-2.0
// doctor: finds problems of this host, a host of the fleet, or the whole fleet before programs meet
// them.
#include <ctime>
#include <iostream>

#include "controlplane/cli/client/state_client.h"
#include "controlplane/cli/client/tls_probe.h"
#include "controlplane/cli/commands/fleet_doctor.h"
#include "controlplane/cli/commands/fleet_progress.h"
#include "controlplane/cli/commands/in_parallel.h"
#include "controlplane/cli/commands/live_state.h"
#include "controlplane/cli/documents/documents.h"
#include "controlplane/cli/printing.h"
#include "controlplane/cli/program.h"
#include "controlplane/cli/views/doctor_view.h"
#include "controlplane/identity/certificate_diagnosis.h"
#include "gateway/base/foreign_text.h"
#include "gateway/disk/durable_file.h"
#include "gateway/doctor/examine.h"
#include "gateway/doctor/read_host.h"
#include "proto/rules/finding.h"

namespace rocegw::cli {
namespace {

using gateway::v1::DiagnoseResponse;

struct DoctorQuery {
  std::string gateway;
  std::string agent_dir = "/var/lib/rocegw-agent";
};

int64_t NowNs() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

int64_t NanosecondsOf(const google::protobuf::Timestamp& time) {
  return time.seconds() * 1'000'000'000 + time.nanos();
}

int Print(const Program& program, const DiagnoseResponse& diagnosis) {
  if (program.options.format == "name") {
    for (const auto& one : diagnosis.diagnoses()) {
      if (one.severity() != gateway::v1::OK)
        std::cout << ForeignText(one.object() + " " + one.check()) << "\n";
    }
  } else if (!PrintDocument(program, diagnosis)) {
    std::cout << DiagnosisView(diagnosis, program.wide());
  }
  return WorstOf(diagnosis);
}

// This host ---------------------------------------------------------------------------------------

// Adds what the agent would report if it were asked through its controller.
void AddCertificate(const DoctorQuery& query, DiagnoseResponse& out) {
  const auto pem = ReadSmallFile(query.agent_dir + "/node.crt");
  if (!pem.ok()) return;
  const auto facts = identity::FactsOfPem(pem.value());
  if (!facts.ok()) return;
  const std::string& uri = facts.value().uri;
  *out.add_diagnoses() =
      identity::DiagnoseCertificate("gateways/" + uri.substr(uri.rfind('/') + 1),
                                    facts.value().issued, facts.value().not_after, identity::Now());
  rules::SortByWorst(out);
}

int ExamineHere(Program& program, const DoctorQuery& query, const CallResult& opened) {
  DiagnoseResponse diagnosis;
  CallResult asked = opened;
  if (asked.ok()) asked = StateClient(program.rpc(), {}).Diagnose(diagnosis);
  if (asked.code == kUnavailable || asked.code == kDeadline) {
    doctor::Facts facts;
    facts.gateway.gateway = "host";
    facts.gateway.wants_udp_port = true;
    facts.gateway.remap_allowed = true;
    facts.host = doctor::ReadHost(facts.gateway);
    diagnosis = doctor::ExamineHostAlone(facts, asked.text);
  } else if (!asked.ok()) {
    return Fail(asked);
  }
  AddCertificate(query, diagnosis);
  return Print(program, diagnosis);
}

// The fleet ---------------------------------------------------------------------------------------

CallResult ReadController(Program& program, FleetFacts& facts) {
  FleetProgress progress;
  const int64_t asked = NowNs();
  if (auto result = GetProgress(program.rpc(), 0, progress); !result.ok()) return result;
  facts.controller_version = progress.version();
  facts.controller_clock = ReadClock(asked, NowNs(), NanosecondsOf(progress.read_time()));
  ObjectList gateways;
  if (auto r = program.objects().List(*FindKind("gateways"), {}, {}, gateways); !r.ok()) return r;
  for (const MessagePtr& object : gateways.objects)
    facts.gateways.emplace_back().gateway = static_cast<const types::v1::Gateway&>(*object);
  ObjectList pools;
  if (auto r = program.objects().List(*FindKind("pools"), {}, {}, pools); !r.ok()) return r;
  for (const MessagePtr& object : pools.objects)
    facts.pools.push_back(static_cast<const types::v1::Pool&>(*object));
  facts.now = Program::Now();
  return {};
}

void ReadGateway(Program& program, GatewayReading& reading) {
  // A disconnected gateway would only cause a timeout.
  if (!reading.gateway.status().connected()) return;
  reading.asked = true;
  const int64_t asked = NowNs();
  StateClient client(program.rpc(), reading.gateway.name());
  const CallResult result = client.Diagnose(reading.diagnosis);
  reading.problem = result.text;
  if (!result.ok()) return;
  reading.clock = ReadClock(asked, NowNs(), NanosecondsOf(reading.diagnosis.read_time()));
  types::v1::GatewayStatus status;
  if (!client.GetStatus(status).ok()) return;
  for (const types::v1::Port& port : status.ports()) reading.mtus.push_back(port.interface_mtu());
}

// Certificates between caller and controller. Over TLS: the controller's, and those that the
// context names; on the controller's own host those beside its socket.
DiagnoseResponse DiagnoseCertificates(const Rpc& rpc) {
  const Endpoint& endpoint = rpc.endpoint();
  identity::CallerView view;
  identity::X509Certificate server;
  if (endpoint.socket.empty()) {
    view.host = endpoint.server_name.empty() ? HostOf(endpoint.address) : endpoint.server_name;
    view.trusted_file = endpoint.ca_file;
    view.needs_own = true;
    if (auto shown = CertificateShownBy(endpoint.address, view.host, rpc.timeout()); shown.ok())
      server = std::move(*shown);
    if (const auto pem = ReadSmallFile(endpoint.certificate_file); pem.ok()) {
      if (auto facts = identity::FactsOfPem(pem.value()); facts.ok()) view.own = *facts;
    }
  } else {
    const std::string directory = endpoint.socket.substr(0, endpoint.socket.rfind('/'));
    view.trusted_file = directory + "/ca.crt";
    if (const auto pem = ReadSmallFile(directory + "/server.crt"); pem.ok()) {
      if (auto read = identity::CertificateFromPem(pem.value()); read.ok())
        server = std::move(*read);
    }
  }
  view.server = server.get();
  if (const auto pem = ReadSmallFile(view.trusted_file); pem.ok()) {
    if (auto trusted = identity::CertificatesFromPem(pem.value()); trusted.ok())
      view.trusted = std::move(*trusted);
  }
  DiagnoseResponse response;
  for (auto& diagnosis : identity::DiagnoseCaller(view, identity::Now()))
    *response.add_diagnoses() = std::move(diagnosis);
  return response;
}

// Reports a controller that does not answer if certificates explain it.
int ExamineWithoutController(const Program& program, const CallResult& failed,
                             DiagnoseResponse certificates) {
  if (WorstOf(certificates) == kOk) return Fail(failed);
  *certificates.add_diagnoses() =
      rules::Check("controller", "controller")
          .Fail(failed.text, "nothing can be said about the fleet", "what else is found here");
  rules::SortByWorst(certificates);
  return Print(program, certificates);
}

int ExamineAll(Program& program) {
  FleetFacts facts;
  DiagnoseResponse certificates;
  {
    Progress line;
    line.Show("asking the controller");
    const CallResult answered = ReadController(program, facts);
    certificates = DiagnoseCertificates(program.rpc());
    if (!answered.ok()) return ExamineWithoutController(program, answered, certificates);
    line.Show("asking the gateways");
    InParallel(facts.gateways.size(), [&](size_t i) { ReadGateway(program, facts.gateways[i]); });
  }
  DiagnoseResponse response = ExamineFleet(facts);
  response.mutable_diagnoses()->MergeFrom(certificates.diagnoses());
  rules::SortByWorst(response);
  return Print(program, response);
}

int Doctor(Program& program, const DoctorQuery& query) {
  if (query.gateway.empty()) {
    const CallResult opened = program.Open();
    if (program.is_gateway()) return ExamineHere(program, query, opened);
    return opened.ok() ? ExamineAll(program) : Fail(opened);
  }
  std::string name;
  if (auto result = OpenGateway(program, query.gateway, name); !result.ok()) return Fail(result);
  DiagnoseResponse diagnosis;
  if (auto result = StateClient(program.rpc(), name).Diagnose(diagnosis); !result.ok())
    return Fail(result);
  return Print(program, diagnosis);
}

}  // namespace

void AddDoctorCommand(CLI::App& app, Program& program) {
  const auto query = std::make_shared<DoctorQuery>();
  CLI::App* const command =
      program.Add(app, "doctor", "looks for trouble: each finding with its remedy",
                  "  rocegwctl doctor                    every gateway, and the fleet as a whole\n"
                  "  rocegwctl doctor --gateway host-a   one gateway, through its agent\n"
                  "  rocegwctl --local doctor            this host, also when rocegwd is down\n"
                  "  rocegwctl doctor -o wide            what is good, too\n"
                  "Limits, huge pages, UDP port 4791, links, MTU, offloads, buffers, neighbours,\n"
                  "clocks, memory of programs, permissions, versions, certificates; of a fleet\n"
                  "also gateways that are away, lag or reject, and clocks, versions and MTUs that\n"
                  "differ. Exit status: 0 nothing found, 9 warnings, 10 failures.",
                  [&program, query] { return Doctor(program, *query); });
  command->add_option("-g,--gateway", query->gateway, "only this gateway of the fleet")
      ->type_name("NAME");
  command->add_option("--agent-dir", query->agent_dir, "the agent's state_dir on this host")
      ->type_name("DIR")
      ->capture_default_str();
}

}  // namespace rocegw::cli
