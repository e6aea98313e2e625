// SPDX-License-Identifier: Apache-2.0
#include "gateway/doctor/examine.h"

#include "gateway/base/service_advice.h"
#include "gateway/doctor/host_checks.h"
#include "gateway/doctor/port_checks.h"

namespace rocegw::doctor {
namespace {

using rules::Check;
using rules::SortByWorst;

// Checks that are also useful before a gateway starts.
constexpr Diagnosis (*kOfHost[])(const Facts&) = {CheckClock, CheckRemapping, CheckEgress};
constexpr Diagnosis (*kOfGateway[])(const Facts&) = {
    CheckUdpPort,      CheckLibraries,   CheckRuntimeDir,  CheckSockets,    CheckProcessMemory,
    CheckProcessors,   CheckWorkers,     CheckOpenFiles,   CheckSendBuffer, CheckHugePages,
    CheckLockedMemory, CheckMemoryLimit, CheckTrustedPools};
constexpr Diagnosis (*kOfPort[])(const Facts&, const PortFacts&) = {
    CheckLink, CheckPathMtu, CheckAddresses, CheckReceiveBuffer, CheckOffloads, CheckNeighbours};

}  // namespace

gateway::v1::DiagnoseResponse Examine(const Facts& facts) {
  gateway::v1::DiagnoseResponse response;
  for (const PortFacts& port : facts.gateway.ports)
    for (const auto check : kOfPort) *response.add_diagnoses() = check(facts, port);
  for (const auto check : kOfGateway) *response.add_diagnoses() = check(facts);
  for (const auto check : kOfHost) *response.add_diagnoses() = check(facts);
  SortByWorst(response);
  return response;
}

gateway::v1::DiagnoseResponse ExamineHostAlone(const Facts& facts, const std::string& why) {
  gateway::v1::DiagnoseResponse response;
  *response.add_diagnoses() =
      Check("daemon", facts.gateway.gateway)
          .Fail(why,
                "nothing works here without it; what follows is this host as rocegwctl sees it",
                HowToStart("rocegwd") + "; " + HowToReadLog("rocegwd"));
  for (const PortHolder& holder : facts.host.udp_port) {
    if (holder.command == "rocegwd") continue;
    *response.add_diagnoses() = CheckUdpPort(facts);
    break;
  }
  for (const auto check : kOfHost) *response.add_diagnoses() = check(facts);
  SortByWorst(response);
  return response;
}

}  // namespace rocegw::doctor
