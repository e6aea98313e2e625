// SPDX-License-Identifier: Apache-2.0
#include "controlplane/kubeapi/token_review.h"

#include <algorithm>
#include <cerrno>
#include <string_view>

namespace rocegw::kubeapi {
namespace {

using nlohmann::json;

// Entry of the user's extra fields, a list of one text. Tokens of pods have it from Kubernetes 1.30
// on (ServiceAccountTokenPodNodeInfo).
constexpr std::string_view kNodeName = "authentication.kubernetes.io/node-name";

// Returns the member; null: none.
const json& Member(const json& object, std::string_view name) {
  static const json kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(std::string(name));
  return found == object.end() ? kNothing : *found;
}

std::string Text(const json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

}  // namespace

HttpRequest TokenReviewRequest(const std::string& token, const std::string& audience) {
  const json review = {{"apiVersion", "authentication.k8s.io/v1"},
                       {"kind", "TokenReview"},
                       {"spec", {{"token", token}, {"audiences", {audience}}}}};
  // A stranger's token may hold bytes that are no UTF-8.
  return {"POST", "/apis/authentication.k8s.io/v1/tokenreviews", "application/json",
          review.dump(-1, ' ', false, json::error_handler_t::replace)};
}

StatusOr<ReviewedToken> ReadTokenReview(const json& object, const std::string& audience) {
  const json& status = Member(object, "status");
  const json& authenticated = Member(status, "authenticated");
  if (!authenticated.is_boolean() || !authenticated.get<bool>())
    return Status(EACCES, "the API server does not know this token, or it has expired");
  const json& audiences = Member(status, "audiences");
  if (!audiences.is_array() || std::ranges::find(audiences, json(audience)) == audiences.end())
    return Status(EACCES, "the token was not made for the audience " + audience);
  const json& user = Member(status, "user");
  ReviewedToken token{Text(Member(user, "username")), {}};
  const json& node = Member(Member(user, "extra"), kNodeName);
  if (node.is_array() && node.size() == 1) token.node = Text(node.front());
  return token;
}

}  // namespace rocegw::kubeapi
