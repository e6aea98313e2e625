// SPDX-License-Identifier: Apache-2.0
// Probes that the controller asks for: finds the attach socket of the pool, starts rocegw-probe
// under rocegw-run, hands its words up, and asks the gateway what its connection travelled on.
// Every one has a time limit and ends with its question. Made, called and destroyed on the agent's
// loop; loop and gateway outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "agent/probe/child_process.h"
#include "agent/reconcile/gateway_port.h"
#include "gateway/session/control_loop.h"
#include "rocegw/fleet/v1/node.pb.h"

namespace rocegw::agent {

class Probes {
 public:
  // A part of the answer, complete but for its id.
  using Part = std::function<void(fleet::v1::TunnelAnswer)>;
  // At a time; a test of a gateway with itself takes two.
  static constexpr size_t kMost = 8;

  // folder: of rocegw-run and rocegw-probe.
  Probes(session::ControlLoop& loop, GatewayPort& gateway, std::string folder);
  ~Probes();
  Probes(const Probes&) = delete;
  Probes& operator=(const Probes&) = delete;

  void Start(uint64_t question, const fleet::v1::ProbeRequest& request, Part part);
  // Nobody waits any more: the probe is killed and calls back no more.
  void Cancel(uint64_t question);
  void CancelAll();
  // Processes that are there.
  size_t running() const { return probes_.size() + dying_.size(); }

 private:
  struct Probe {
    fleet::v1::ProbeRequest request;
    Part part;
    std::unique_ptr<ChildProcess> process;
    session::ControlLoop::TimerId timer = 0;
    uint64_t number = 0;  // questions of another controller have the same numbers
  };

  // What the gateway answered, if somebody still waits.
  using Answered = std::function<void(Probe&, const fleet::v1::TunnelAnswer&)>;
  void Ask(uint64_t question, const fleet::v1::TunnelQuestion& asked, Answered answered);
  void FindSocket(uint64_t question, const std::string& page_token);
  void Launch(uint64_t question, Probe& probe, const std::string& socket);
  // nullptr: it is gone.
  Probe* Find(uint64_t question, uint64_t number);
  void OnLine(uint64_t question, uint64_t number, std::string_view text);
  void OnMeasured(uint64_t question, uint32_t qpn, const fleet::v1::ProbeReport& report);
  void OnEnded(uint64_t question, uint64_t number, int status);
  // The last part; the probe is gone.
  void Finish(uint64_t question, const fleet::v1::ProbeReport& report);
  // Its process is killed now and reaped when it has ended.
  void Remove(uint64_t question);

  session::ControlLoop& loop_;
  GatewayPort& gateway_;
  const std::string folder_;
  std::map<uint64_t, Probe> probes_;                         // by question
  std::map<uint64_t, std::unique_ptr<ChildProcess>> dying_;  // by number
  uint64_t last_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rocegw::agent
