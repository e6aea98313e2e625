// SPDX-License-Identifier: Apache-2.0
// Identity of this host in its fleet, as files in the agent's state directory: node.key (0600),
// node.crt, ca.crt and fleet.yaml (controllers, expected server name, gateway). A renewed
// certificate is used by channels created afterwards. Blocking; one thread.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>
#include <vector>

#include "controlplane/identity/certificate.h"
#include "controlplane/identity/join_token.h"
#include "gateway/base/status.h"

namespace rocegw::agent {

class NodeIdentity {
 public:
  // Returns ENOENT if this host has not joined a fleet.
  static StatusOr<NodeIdentity> Load(const std::string& directory);
  // Exchanges the token for a certificate, asking the file's controllers one after the other, and
  // writes the files. `gateway`: "gateways/G". `pod_token`: token of this pod's service account,
  // which is used if the file has no token. A join that could not store its answer can be repeated
  // with the same token. EEXIST: it has joined already. EINVAL: no token.
  static StatusOr<NodeIdentity> Join(const std::string& directory, const identity::JoinFile& file,
                                     const std::string& gateway, const std::string& pod_token = {});

  // "gateways/G"
  const std::string& gateway() const { return gateway_; }
  const std::vector<std::string>& controllers() const { return controllers_; }
  identity::TimePoint issued() const { return facts_.issued; }
  identity::TimePoint not_after() const { return facts_.not_after; }
  bool IsDueForRenewal(identity::TimePoint now) const;
  // Returns why controllers refuse the certificate at this time, with a remedy; empty: it is valid.
  std::string WhyNotValid(identity::TimePoint now) const;

  // Explains a failed connection to the controller at "HOST:PORT" if its certificate is not of this
  // host's fleet; otherwise returns the error unchanged.
  std::string Explained(const std::string& controller, const std::string& error) const;
  // Returns ESTALE, with the fleets' names and a remedy, if the join file is of another fleet than
  // this host.
  Status IsOfFleet(const identity::JoinFile& file) const;
  // Removes the identity: the next start asks for a join file. ENOENT: there was none.
  static Status Leave(const std::string& directory);

  // Returns a channel with mutual TLS to the controller at "HOST:PORT".
  std::shared_ptr<grpc::Channel> ChannelTo(const std::string& controller) const;
  // Returns a request for the existing key: the key file stays, so that certificate and key always
  // match.
  StatusOr<std::string> CertificateRequest() const;
  // Stores the controller's answer.
  Status TakeRenewed(const std::string& certificate_chain, const std::string& trust_bundle);

 private:
  std::string HowToJoinAnew() const;
  explicit NodeIdentity(std::string directory) : directory_(std::move(directory)) {}
  StatusOr<std::string> KeyToJoinWith() const;
  Status WriteCertificates(const std::string& chain, const std::string& bundle);
  std::string File(const char* name) const { return directory_ + "/" + name; }

  std::string directory_;
  std::string gateway_;
  std::vector<std::string> controllers_;
  std::string server_name_;
  std::string key_;
  std::string chain_;
  std::string bundle_;
  identity::CertificateFacts facts_;
};

}  // namespace rocegw::agent
