// SPDX-License-Identifier: Apache-2.0
// Check of certificates for all services on the TLS port, including gRPC's own. Without a
// certificate only joining and health are answered, and a certificate that was revoked, replaced or
// expired since the connection began does not count. Services check permissions separately. gRPC's
// threads.
#pragma once

#include <grpcpp/security/auth_metadata_processor.h>

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "controlplane/identity/certificate.h"
#include "controlplane/identity/revocations.h"
#include "controlplane/server/front/open_calls.h"

namespace rocegw::server {

// Returns true if the method ("/package.Service/Method") is answered without a certificate.
bool IsOpenMethod(std::string_view method);

// Returns the URI of the client's certificate; "": there is none.
std::string PrincipalOf(const grpc::AuthContext& context);

class ConnectionGuard final : public grpc::AuthMetadataProcessor {
 public:
  // `expel`: gets the principal that has too many calls.
  using Expel = std::function<void(const std::string& principal)>;

  ConnectionGuard(identity::Revocations& revocations, std::string domain, OpenCalls& calls,
                  Expel expel)
      : revocations_(revocations),
        domain_(std::move(domain)),
        calls_(calls),
        expel_(std::move(expel)) {}

  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context,
                       OutputMetadata* consumed, OutputMetadata* response) override;

 private:
  struct Known {
    std::string uri;
    std::string serial;
    identity::TimePoint not_before;
    identity::TimePoint not_after;
  };
  // Parses a certificate once, not once per call.
  Known Read(const std::string& pem);

  identity::Revocations& revocations_;
  const std::string domain_;
  OpenCalls& calls_;
  const Expel expel_;
  std::mutex mutex_;
  std::unordered_map<std::string, Known> known_;
};

}  // namespace rocegw::server
