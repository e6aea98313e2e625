// SPDX-License-Identifier: Apache-2.0
// Probes that the controller asks for: finds the attach socket of the pool, starts rocegw-probe
// under rocegw-run, forwards its output, and asks the gateway about its connection's transport.
// Each probe has a time limit and ends with its question. Created, called and destroyed on the
// agent's loop; loop and gateway outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "agent/probe/child_process.h"
#include "agent/probe_program/probe_lines.h"
#include "agent/reconcile/gateway_port.h"
#include "gateway/loop/control_loop.h"
#include "rocegw/fleet/v1/node.pb.h"

namespace rocegw::agent {

class Probes {
 public:
  // Part of the answer, complete except for its id.
  using Part = std::function<void(fleet::v1::TunnelAnswer)>;
  // Limit at a time; a test of a gateway with itself takes two.
  static constexpr size_t kMost = 8;

  // `folder`: directory of rocegw-run and rocegw-probe.
  Probes(ControlLoop& loop, GatewayPort& gateway, std::string folder);
  ~Probes();
  Probes(const Probes&) = delete;
  Probes& operator=(const Probes&) = delete;

  void Start(uint64_t question, const fleet::v1::ProbeRequest& request, Part part);
  // Kills the probe of a question that was cancelled; it calls back no more.
  void Cancel(uint64_t question);
  void CancelAll();
  // Returns the number of processes.
  size_t running() const { return probes_.size() + dying_.size(); }

 private:
  struct Probe {
    fleet::v1::ProbeRequest request;
    Part part;
    std::unique_ptr<ChildProcess> process;
    ControlLoop::TimerId timer = 0;
    // Result over RDMA, which waits for that of the network beside it.
    std::optional<probe::Measured> measured;
    std::optional<types::v1::PlainPath> plain;
    bool ending = false;  // the gateway is asked; its answer ends the question
    uint64_t number = 0;  // distinguishes equal question ids of different controllers
  };

  // Receives the gateway's answer if the question still exists.
  using Answered = std::function<void(Probe&, const fleet::v1::TunnelAnswer&)>;
  void Ask(uint64_t question, const fleet::v1::TunnelQuestion& asked, Answered answered);
  void FindSocket(uint64_t question, const std::string& page_token);
  void Launch(uint64_t question, Probe& probe, const std::string& socket);
  // Returns nullptr if the probe has ended.
  Probe* Find(uint64_t question, uint64_t number);
  void OnLine(uint64_t question, uint64_t number, std::string_view text);
  // Reports the result over RDMA, with what is known of the network beside it.
  void OnMeasured(uint64_t question, Probe& probe);
  // Reports that the probe failed. A result over RDMA that it had is kept.
  void Fail(uint64_t question, Probe& probe, const fleet::v1::ProbeReport& report);
  void OnEnded(uint64_t question, uint64_t number, int status);
  // Sends the last part; the probe is destroyed.
  void Finish(uint64_t question, const fleet::v1::ProbeReport& report);
  // Kills the process now and reaps it when it has ended.
  void Remove(uint64_t question);

  ControlLoop& loop_;
  GatewayPort& gateway_;
  const std::string folder_;
  std::map<uint64_t, Probe> probes_;                         // by question
  std::map<uint64_t, std::unique_ptr<ChildProcess>> dying_;  // by number
  uint64_t last_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rocegw::agent
