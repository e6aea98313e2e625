// SPDX-License-Identifier: Apache-2.0
// Commands by which a person inspects or restarts one of the daemons, depending on where this
// process runs: systemd, or kubectl in a Kubernetes pod. Any thread.
#pragma once

#include <cstdlib>
#include <string>

namespace rocegw {

// The kubelet sets the variable in every container.
inline bool RunsInPod() { return std::getenv("KUBERNETES_SERVICE_HOST") != nullptr; }

// service: "rocegwd"
inline std::string HowToReadLog(const std::string& service) {
  return RunsInPod() ? "kubectl logs POD, the pod of " + service + " on that node"
                     : "journalctl -u " + service + " -n 20";
}

inline std::string HowToSeeState(const std::string& service) {
  return RunsInPod() ? "kubectl describe pod POD, the pod of " + service + " on that node"
                     : "systemctl status " + service;
}

inline std::string HowToStart(const std::string& service) {
  return RunsInPod() ? "kubectl delete pod POD, the pod of " + service + ": a new one starts"
                     : "systemctl restart " + service;
}

}  // namespace rocegw
