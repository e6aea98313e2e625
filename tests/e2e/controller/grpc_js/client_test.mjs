// SPDX-License-Identifier: Apache-2.0
// The controller as a client of another implementation sees it: health, reflection, create, read, update, delete, lists,
// watches, errors with their details, joining.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";
import protobuf from "protobufjs";

const options = { keepCase: true, longs: String, enums: String, defaults: true, oneofs: true,
                  includeDirs: [process.env.PROTO, "."] };
const load = (...files) => grpc.loadPackageDefinition(loader.loadSync(files, options));
const api = load("rocegw/admin/v1/tenants.proto", "rocegw/admin/v1/pools.proto", "rocegw/admin/v1/role_bindings.proto",
                 "rocegw/fleet/v1/node.proto", "health.proto", "reflection.proto");

const directory = mkdtempSync(join(tmpdir(), "rocegw-js-"));
const state = join(directory, "state");
let controller;
let address;

const freePort = () => new Promise((resolve) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address();
    server.close(() => resolve(port));
  });
});
const run = (program, ...words) => execFileSync(program, words, { stdio: ["ignore", "pipe", "pipe"] }).toString();
const deadline = () => ({ deadline: Date.now() + 20000 });
const trust = () => readFileSync(join(state, "ca.crt"));
const anonymous = () => grpc.credentials.createSsl(trust());
const user = (name) => grpc.credentials.createSsl(trust(), readFileSync(join(directory, `${name}.key`)),
                                                  readFileSync(join(directory, `${name}.crt`)));
const call = (client, method, request = {}) => new Promise((resolve, reject) => {
  client[method](request, deadline(), (error, response) => (error ? reject(error) : resolve(response)));
});
// Called by an address, the controller is asked for the name that each of its kind has.
const client = (service, credentials) =>
  new service(address, credentials, { "grpc.ssl_target_name_override": "controller.rocegw" });

// The messages of the trailer grpc-status-details-bin, by name of type.
async function detailsOf(error) {
  const root = await protobuf.load(join(process.env.PROTO, "google/rpc/error_details.proto"));
  const trailer = error.metadata.get("grpc-status-details-bin");
  assert.equal(trailer.length, 1, "one trailer");
  const status = root.lookupType("google.rpc.Status").decode(trailer[0]);
  assert.equal(status.code, error.code);
  const found = {};
  for (const any of status.details) {
    const type = any.type_url.split("/")[1];
    found[type] = root.lookupType(type).toObject(root.lookupType(type).decode(any.value), { arrays: true });
  }
  return found;
}

before(async () => {
  const port = await freePort();
  address = `127.0.0.1:${port}`;
  const config = join(directory, "config.yaml");
  writeFileSync(config, `state_dir: ${state}\naddress: ${address}\nmetrics: {address: ""}\n`);
  controller = spawn(process.env.CONTROLLER, ["--config", config], { stdio: ["ignore", "pipe", "inherit"] });
  // It prints how to join once it serves.
  await new Promise((resolve, reject) => {
    controller.stdout.once("data", resolve);
    controller.once("exit", (code) => reject(new Error(`the controller ended with ${code}`)));
  });
  for (const name of ["root", "nobody"]) run(process.env.CONTROLLER, "--config", config, "user-certificate", name, "--out", directory);
  const bindings = new api.rocegw.admin.v1.RoleBindings(`unix:${state}/admin.sock`, grpc.credentials.createInsecure());
  await call(bindings, "CreateRoleBinding", { role_binding: {
    name: "roleBindings/root", spec: { subject: "spiffe://rocegw/user/root", role: "ADMIN" } } });
  bindings.close();
});

after(() => {
  controller.kill();
  rmSync(directory, { recursive: true });
});

test("health is answered without a certificate", async () => {
  const health = client(api.grpc.health.v1.Health, anonymous());
  assert.equal((await call(health, "Check")).status, "SERVING");
  assert.equal((await call(health, "Check", { service: "rocegw.admin.v1.Tenants" })).status, "SERVING");
  await assert.rejects(call(health, "Check", { service: "no.such" }), { code: grpc.status.NOT_FOUND });
  health.close();
});

const reflect = (credentials, request) => new Promise((resolve, reject) => {
  const reflection = client(api.grpc.reflection.v1alpha.ServerReflection, credentials);
  const stream = reflection.ServerReflectionInfo(deadline());
  stream.on("data", (response) => { resolve(response); stream.end(); });
  stream.on("error", reject);
  stream.on("end", () => reflection.close());
  stream.write(request);
});

test("reflection tells the services, to those with a certificate", async () => {
  const response = await reflect(user("root"), { list_services: "*" });
  const names = response.list_services_response.service.map((service) => service.name);
  for (const name of ["rocegw.admin.v1.Tenants", "rocegw.admin.v1.Pools", "rocegw.fleet.v1.NodeService", "grpc.health.v1.Health"]) {
    assert.ok(names.includes(name), `${name} of ${names}`);
  }
  const file = await reflect(user("root"), { file_containing_symbol: "rocegw.admin.v1.Tenants" });
  assert.ok(file.file_descriptor_response.file_descriptor_proto.length > 0);
  await assert.rejects(reflect(anonymous(), { list_services: "*" }), { code: grpc.status.UNAUTHENTICATED });
});

test("objects are created, read, listed, updated and deleted", async () => {
  const tenants = client(api.rocegw.admin.v1.Tenants, user("root"));
  const pools = client(api.rocegw.admin.v1.Pools, user("root"));
  const created = await call(tenants, "CreateTenant", { tenant: { name: "tenants/acme", spec: { weight: 3 } } });
  assert.equal(created.meta.generation, "1");
  assert.deepEqual(await call(tenants, "GetTenant", { name: "tenants/acme" }), created);
  await call(pools, "CreatePool", { pool: { name: "tenants/acme/pools/gold", spec: { gateways: { all: true } } } });
  const listed = await call(pools, "ListPools", { parent: "tenants/-" });
  assert.deepEqual(listed.pools.map((pool) => pool.name), ["tenants/acme/pools/gold"]);
  const updated = await call(tenants, "UpdateTenant", {
    tenant: { name: "tenants/acme", meta: { etag: created.meta.etag }, spec: { weight: 5 } },
    update_mask: { paths: ["spec.weight"] } });
  assert.equal(updated.spec.weight, 5);
  assert.notEqual(updated.meta.etag, created.meta.etag);
  await call(pools, "DeletePool", { name: "tenants/acme/pools/gold" });
  await call(tenants, "DeleteTenant", { name: "tenants/acme", etag: updated.meta.etag });
  await assert.rejects(call(tenants, "GetTenant", { name: "tenants/acme" }), { code: grpc.status.NOT_FOUND });
  tenants.close();
  pools.close();
});

test("a watch shows what is there and then each change", async () => {
  const tenants = client(api.rocegw.admin.v1.Tenants, user("root"));
  await call(tenants, "CreateTenant", { tenant: { name: "tenants/seen" } });
  const stream = tenants.WatchTenants({}, deadline());
  stream.on("error", () => {});  // that it is cancelled
  const messages = stream[Symbol.asyncIterator]();
  const first = (await messages.next()).value;
  assert.ok(first.synced);
  assert.deepEqual(first.changed.map((tenant) => tenant.name), ["tenants/seen"]);
  await call(tenants, "DeleteTenant", { name: "tenants/seen" });
  assert.deepEqual((await messages.next()).value.deleted, ["tenants/seen"]);
  stream.cancel();
  tenants.close();
});

test("errors have a code, a reason and the fields at fault", async () => {
  const tenants = client(api.rocegw.admin.v1.Tenants, user("root"));
  const pools = client(api.rocegw.admin.v1.Pools, user("root"));
  const errorOf = (promise) => promise.then(() => assert.fail("was allowed"), (error) => error);
  await call(tenants, "CreateTenant", { tenant: { name: "tenants/acme" } });

  const again = await errorOf(call(tenants, "CreateTenant", { tenant: { name: "tenants/acme" } }));
  assert.equal(again.code, grpc.status.ALREADY_EXISTS);
  const info = (await detailsOf(again))["google.rpc.ErrorInfo"];
  assert.deepEqual(info, { reason: "ALREADY_EXISTS", domain: "rocegw.io", metadata: { name: "tenants/acme" } });

  const wrong = await errorOf(call(pools, "CreatePool", { pool: {
    name: "tenants/acme/pools/gold", spec: { slots: 5000, gateways: { all: true } } } }));
  assert.equal(wrong.code, grpc.status.INVALID_ARGUMENT);
  const fields = (await detailsOf(wrong))["google.rpc.BadRequest"].fieldViolations;
  assert.deepEqual(fields.map((violation) => violation.field), ["pool.spec.slots"]);

  const stale = await errorOf(call(tenants, "UpdateTenant", {
    tenant: { name: "tenants/acme", meta: { etag: "r1" } }, update_mask: { paths: ["spec.weight"] } }));
  assert.equal(stale.code, grpc.status.ABORTED);
  assert.equal((await detailsOf(stale))["google.rpc.ErrorInfo"].reason, "ETAG_MISMATCH");

  const orphan = await errorOf(call(pools, "CreatePool", { pool: {
    name: "tenants/none/pools/gold", spec: { gateways: { all: true } } } }));
  assert.equal(orphan.code, grpc.status.FAILED_PRECONDITION);
  assert.equal((await detailsOf(orphan))["google.rpc.ErrorInfo"].reason, "MISSING_REFERENCE");

  const stranger = client(api.rocegw.admin.v1.Tenants, user("nobody"));
  const denied = await errorOf(call(stranger, "GetTenant", { name: "tenants/acme" }));
  assert.equal(denied.code, grpc.status.PERMISSION_DENIED);
  assert.equal((await detailsOf(denied))["google.rpc.ErrorInfo"].reason, "PERMISSION_DENIED");

  const timeless = await errorOf(new Promise((resolve, reject) => {
    tenants.GetTenant({ name: "tenants/acme" }, (error, response) => (error ? reject(error) : resolve(response)));
  }));
  assert.equal((await detailsOf(timeless))["google.rpc.ErrorInfo"].reason, "DEADLINE_REQUIRED");
  for (const one of [tenants, pools, stranger]) one.close();
});

test("a host joins with the first join file and a request that the openssl command made", async () => {
  const file = readFileSync(join(state, "join.yaml")).toString();
  const token = /^token: "(.*)"$/m.exec(file)[1];
  const key = join(directory, "node.key");
  run("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key);
  const request = run("openssl", "req", "-new", "-key", key, "-subj", "/CN=root");
  const nodes = client(api.rocegw.fleet.v1.NodeService, anonymous());
  const joined = await call(nodes, "Join", { gateway: "gateways/host-a", token, certificate_request: request });
  writeFileSync(join(directory, "node.crt"), joined.certificate_chain);
  const text = run("openssl", "x509", "-noout", "-text", "-in", join(directory, "node.crt"));
  assert.match(text, /URI:spiffe:\/\/rocegw\/node\/host-a\n/);
  assert.doesNotMatch(text, /CN = root/, "what the request says about names counts for nothing");
  const node = client(api.rocegw.fleet.v1.NodeService, user("node"));
  const renewed = await call(node, "Renew", { gateway: "gateways/host-a", certificate_request: request });
  assert.match(renewed.certificate_chain, /BEGIN CERTIFICATE/);
  await assert.rejects(call(node, "Renew", { gateway: "gateways/host-b", certificate_request: request }),
                       { code: grpc.status.PERMISSION_DENIED });
  nodes.close();
  node.close();
});
