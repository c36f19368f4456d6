/**
 * The mechanisms of Coapace in Java: exact state machines in integers, without a clock, random numbers or threads of their own. They
 * agree with {@code vectors/*.csv} to the microsecond, and depend on nothing.
 */
package coapace.control;
