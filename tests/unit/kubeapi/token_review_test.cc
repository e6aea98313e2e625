// SPDX-License-Identifier: Apache-2.0
// Review of tokens: the request that is sent, and what is read from the API server's answer.
#include "controlplane/kubeapi/token_review.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace rocegw::kubeapi {
namespace {

using nlohmann::json;

// Answer of Kubernetes 1.36 to the token of a pod.
json Answer() {
  return json::parse(R"({
    "kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1",
    "spec": {"token": "t", "audiences": ["rocegw-join"]},
    "status": {
      "authenticated": true, "audiences": ["rocegw-join"],
      "user": {
        "username": "system:serviceaccount:rocegw:rocegw-agent", "uid": "u",
        "groups": ["system:serviceaccounts"],
        "extra": {
          "authentication.kubernetes.io/node-name": ["node-a.example"],
          "authentication.kubernetes.io/node-uid": ["n"],
          "authentication.kubernetes.io/pod-name": ["rocegw-agent-x"],
          "authentication.kubernetes.io/pod-uid": ["p"]}}}})");
}

int ErrorOf(const json& answer) { return ReadTokenReview(answer, "rocegw-join").status().error(); }

TEST(TokenReview, Request_NamesTokenAndAudience) {
  const HttpRequest request = TokenReviewRequest("a\"b", "rocegw-join");
  EXPECT_EQ(request.method + " " + request.path,
            "POST /apis/authentication.k8s.io/v1/tokenreviews");
  const json body = json::parse(request.body);
  EXPECT_EQ(body["kind"], "TokenReview");
  EXPECT_EQ(body["spec"]["token"], "a\"b");
  EXPECT_EQ(body["spec"]["audiences"], json::array({"rocegw-join"}));
  EXPECT_TRUE(json::accept(TokenReviewRequest("\xff\x01", "a").body));
}

TEST(TokenReview, Answer_TellsAccountAndNode) {
  const auto token = ReadTokenReview(Answer(), "rocegw-join");
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(token.value(),
            (ReviewedToken{"system:serviceaccount:rocegw:rocegw-agent", "node-a.example"}));
}

TEST(TokenReview, TokenThatIsNotValid_IsRefused) {
  json answer = Answer();
  answer["status"]["authenticated"] = false;
  EXPECT_EQ(ErrorOf(answer), EACCES);
  answer["status"].erase("authenticated");
  EXPECT_EQ(ErrorOf(answer), EACCES);
  answer["status"]["authenticated"] = "true";
  EXPECT_EQ(ErrorOf(answer), EACCES);
  for (const json& nonsense : {json(), json::array(), json("text"), json::object()})
    EXPECT_EQ(ErrorOf(nonsense), EACCES);
}

// An API server that does not know audiences answers without them.
TEST(TokenReview, TokenForAnotherAudience_IsRefused) {
  json answer = Answer();
  answer["status"]["audiences"] = {"https://kubernetes.default.svc"};
  EXPECT_EQ(ErrorOf(answer), EACCES);
  answer["status"].erase("audiences");
  EXPECT_EQ(ErrorOf(answer), EACCES);
}

TEST(TokenReview, NodeIsEmpty_UnlessItIsOneText) {
  const auto node_of = [](const json& extra) {
    json answer = Answer();
    answer["status"]["user"]["extra"] = extra;
    return ReadTokenReview(answer, "rocegw-join").value().node;
  };
  const char* const key = "authentication.kubernetes.io/node-name";
  EXPECT_EQ(node_of({{key, {"n"}}}), "n");
  EXPECT_EQ(node_of({{key, {"n", "m"}}}), "");
  EXPECT_EQ(node_of({{key, "n"}}), "");
  EXPECT_EQ(node_of({{key, {7}}}), "");
  EXPECT_EQ(node_of(json::object()), "");
  EXPECT_EQ(node_of(nullptr), "");
}

}  // namespace
}  // namespace rocegw::kubeapi
