// SPDX-License-Identifier: Apache-2.0
// What a ValidatingAdmissionPolicy says of pods, as the API server goes about it (Kubernetes' "Validating Admission Policy"),
// with the CEL of @bufbuild/cel. From stdin: [{policy, requests: [{object, namespaceObject}]}]; to stdout, for each request:
// {matches, denials: [message]}. What cannot be evaluated denies, since that is the policy's failurePolicy.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { celEnv, isCelError, parse, plan } = createRequire(`${process.env.ROCEGW_TYPES}/`)("@bufbuild/cel");
const env = celEnv();

const programs = new Map();

function value(expression, names) {
  if (!programs.has(expression)) programs.set(expression, plan(env, parse(expression)));
  const result = programs.get(expression)(names);
  if (isCelError(result)) throw new Error(result.message);
  return result;
}

function truth(expression, names) {
  const result = value(expression, names);
  if (typeof result !== "boolean") throw new Error(`${expression} is neither true nor false`);
  return result;
}

function judged({ spec }, { object, namespaceObject }) {
  if (spec.failurePolicy !== "Fail") throw new Error(`failurePolicy ${spec.failurePolicy}`);
  // Conditions know nothing of variables and of the namespace.
  let failed;
  for (const { name, expression } of spec.matchConditions) {
    try {
      if (!truth(expression, { object })) return { matches: false, denials: [] };
    } catch (error) {
      failed = `${name}: ${error.message}`;
    }
  }
  if (failed) return { matches: true, denials: [failed] };
  const names = { object, namespaceObject, variables: {} };
  for (const { name, expression } of spec.variables) {
    try {
      names.variables[name] = value(expression, names);
    } catch {
      // Is missed by those that use it, if any.
    }
  }
  const denials = [];
  for (const { expression, message } of spec.validations) {
    try {
      if (!truth(expression, names)) denials.push(message);
    } catch (error) {
      denials.push(error.message);
    }
  }
  return { matches: true, denials };
}

const questions = JSON.parse(readFileSync(0, "utf-8"));
console.log(JSON.stringify(questions.map(({ policy, requests }) => requests.map((request) => judged(policy, request)))));
