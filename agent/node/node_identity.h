// SPDX-License-Identifier: Apache-2.0
// Who this host is in its fleet, as files in the agent's state directory: node.key (0600),
// node.crt, ca.crt and fleet.yaml (controllers, expected server name, gateway). A renewed
// certificate holds for channels that are made afterwards. Blocking; one thread.
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
  // ENOENT: this host has not joined a fleet.
  static StatusOr<NodeIdentity> Load(const std::string& directory);
  // Trades the token for a certificate, asking the controllers of the file one after the other, and
  // writes the files. gateway: "gateways/G". EEXIST: it has joined already.
  static StatusOr<NodeIdentity> Join(const std::string& directory, const identity::JoinFile& file,
                                     const std::string& gateway);

  // "gateways/G"
  const std::string& gateway() const { return gateway_; }
  const std::vector<std::string>& controllers() const { return controllers_; }
  identity::TimePoint issued() const { return facts_.issued; }
  identity::TimePoint not_after() const { return facts_.not_after; }
  bool IsDueForRenewal(identity::TimePoint now) const;
  // Why no controller takes the certificate at this time, and what to do. Empty: it is valid.
  std::string WhyNotValid(identity::TimePoint now) const;

  // What a failed connection to the controller at "HOST:PORT" means and what to do, if its
  // certificate is not of this host's fleet; else the error as it is.
  std::string Explained(const std::string& controller, const std::string& error) const;
  // ESTALE: the join file is of another fleet than this host; says which, and what to do.
  Status IsOfFleet(const identity::JoinFile& file) const;
  // The host has not joined any more: the next start asks for a join file. ENOENT: it had not.
  static Status Leave(const std::string& directory);

  // With mutual TLS, to the controller at "HOST:PORT".
  std::shared_ptr<grpc::Channel> ChannelTo(const std::string& controller) const;
  // For the key that it has: the key file stays, so that certificate and key never differ.
  StatusOr<std::string> CertificateRequest() const;
  // What the controller answered.
  Status TakeRenewed(const std::string& certificate_chain, const std::string& trust_bundle);

 private:
  std::string HowToJoinAnew() const;
  explicit NodeIdentity(std::string directory) : directory_(std::move(directory)) {}
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
