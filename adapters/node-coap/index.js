"use strict";

const { Agent } = require("./agent");
const { MECHANISMS, State } = require("./mechanism");
const { afterTimeout, patientTimeout } = require("./patience");

module.exports = { Agent, MECHANISMS, State, afterTimeout, patientTimeout };
