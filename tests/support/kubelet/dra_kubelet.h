// SPDX-License-Identifier: Apache-2.0
// kubelet as a driver of dynamic resource allocation sees it: it finds the driver's socket in the
// folder plugins_registry, asks what it is, tells it that it is taken, and hands claims to its
// endpoint. Speaks the real protocols at real sockets; each call makes its own connection, as
// kubelet does after a restart of either side. One thread.
#pragma once

#include <string>
#include <vector>

#include "draplugin.pb.h"
#include "pluginregistration.pb.h"

namespace rocegw::testing {

struct ClaimOfAPod {
  std::string name_space;
  std::string name;
  std::string uid;
};

class DraKubelet {
 public:
  // root: gets ROOT/plugins and ROOT/plugins_registry.
  explicit DraKubelet(const std::string& root);

  std::string plugins_dir() const { return root_ + "/plugins"; }
  std::string registry_dir() const { return root_ + "/plugins_registry"; }

  // Waits for the socket of the driver and registers it; false: there is none in time, or it is
  // none of the kind and version that kubelet takes.
  bool Register(const std::string& driver);
  const pluginregistration::PluginInfo& info() const { return info_; }

  // The response for the claim; its error tells also of a call that failed.
  k8s::io::kubelet::pkg::apis::dra::v1::NodePrepareResourceResponse Prepare(
      const ClaimOfAPod& claim) const;
  std::string Unprepare(const ClaimOfAPod& claim) const;

 private:
  const std::string root_;
  pluginregistration::PluginInfo info_;
};

}  // namespace rocegw::testing
