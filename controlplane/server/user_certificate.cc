// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/user_certificate.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "controlplane/identity/certificate_authority.h"
#include "controlplane/identity/join_token.h"
#include "gateway/disk/durable_file.h"

namespace rocegw::server {

StatusOr<UserCertificate> MakeUserCertificate(const Config& config, const std::string& name,
                                              std::chrono::seconds lifetime,
                                              const std::string& directory) {
  // Only the controller's first start creates an authority.
  const std::string authority_key = config.state_dir + "/ca.key";
  if (access(authority_key.c_str(), R_OK) != 0) {
    return Status(errno,
                  authority_key + ": cannot be read: run this on a controller's host, as its user");
  }
  auto authority = identity::CertificateAuthority::Open(config.state_dir, config.trust_domain);
  if (!authority.ok()) return authority.status();
  auto key = identity::NewKey();
  if (!key.ok()) return key.status();
  auto issued =
      (*authority)->IssueUser(**key, name, lifetime, identity::NewSerial(identity::Now()));
  if (!issued.ok()) return issued.status();
  auto key_text = identity::KeyToPem(**key);
  if (!key_text.ok()) return key_text.status();
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return Status(error.value(), directory + ": " + error.message());
  const std::string file = directory + "/" + name;
  for (const Status& status : {WriteDurably(file + ".key", *key_text, 0600),
                               WriteDurably(file + ".crt", issued->pem, 0644),
                               WriteDurably(directory + "/ca.crt", (*authority)->bundle(), 0644)}) {
    if (!status.ok()) return status;
  }
  return UserCertificate{.uri = identity::UserUri((*authority)->domain(), name),
                         .expires = identity::TimeText(issued->not_after)};
}

}  // namespace rocegw::server
